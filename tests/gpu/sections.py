#!/usr/bin/env python3
"""The sections of tests/gpu/run.sh: each shows one group of claims on a real GPU.

Start reading at SECTIONS, at the end. A section is a function that opens items; an item that raises
fails alone. Numbers go to OUT/results.jsonl, one JSON object a line.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys

from session import ROOT, Failed, Session, in_turns, library_folder, limits, require, tail

APPS = {
    "stencil": ["-n", "128", "-i", "6000", "-r", "100"],
    "cg": ["-n", "96", "-i", "1500", "-r", "25"],
    "chain": ["-k", "120", "-i", "400"],
    "phases": ["-p", "24", "-i", "60"],
}
# A barrier costs the simulated driver a switch of stacks for each thread of the block.
SIMULATED_APPS = {
    "stencil": ["-i", "1000", "-r", "50"],
    "cg": ["-n", "40", "-i", "150"],
    "chain": ["-k", "120", "-i", "200"],
    "phases": ["-p", "12", "-i", "60"],
}
APP_VARIANTS = {"cg": ["-H"], "chain": ["-s"]}
TORCH = ["torch_mlp", "torch_transformer", "torch_resnet18", "torch_segmentation"]
SHARE_WANTED = {"torch_mlp": 0.80, "torch_transformer": 0.80}


# ---- what the sections share ----

def counters(stats):
    c = stats.get("counters", {})
    return {k: c.get(k) for k in ("launches_seen", "launches_held", "launches_replayed",
                                  "graph_launches", "nodes_patched", "graphs_built", "copies_seen",
                                  "copies_replayed", "memsets_seen", "memsets_replayed", "asides",
                                  "liveness_flushes", "pace_trials", "pace_eager",
                                  "pace_patient")}


def calls_of(stats):
    calls = stats.get("calls", {})
    return {k: v for k, v in sorted(calls.items(), key=lambda kv: -kv[1]) if v}


def audit(s, command, env, timeout=180):
    """Runs the program under CUPTI and returns its report: kernels, and how many in graphs."""
    report = s.fresh(".json")
    full = dict(with_library(s, "libcupti.so", env), AG_AUDIT=str(report),
                CUDA_INJECTION64_PATH=s.file("libgraph_share.so"))
    done = s.run(command, full, timeout)
    if not report.exists():
        full["LD_PRELOAD"] = (full.get("LD_PRELOAD", "") + ":" +
                              full.pop("CUDA_INJECTION64_PATH")).strip(":")
        full["AG_AUDIT_AT_LOAD"] = "1"
        done = s.run(command, full, timeout)
    require(report.exists(), "the audit wrote nothing: " + tail(done.err))
    share = json.loads(report.read_text())
    require(share["kernels"] > 0, "the audit saw no kernel")
    require(share["dropped_records"] == 0, f"CUPTI dropped {share['dropped_records']} records")
    return share


def with_library(s, name, env):
    """env with the folder of a library of NVIDIA's behind the others."""
    path = env.get("LD_LIBRARY_PATH") or s.base_env()["LD_LIBRARY_PATH"]
    return dict(env, LD_LIBRARY_PATH=path + ":" + library_folder(name))


def describe(share):
    return f"{share['in_graphs']} of {share['kernels']} kernels in graphs ({share['share']:.1%})"


def same(name, lines):
    """All runs printed the same digests."""
    first = lines[0]["digests"]
    require("nothing" not in first.values(), f"{name} hashed nothing")
    for other in lines[1:]:
        require(other["digests"] == first, f"{name}: {other['digests']} is not {first}")


# ---- sections ----

def driver_first(s):
    """Before anything else: which driver is this, and does a launch work."""
    with s.item("driver") as say:
        line = s.measure([s.file("chain_bench"), "--kernels", "8", "--length", "5", "--blocks", "3"])
        say(f"{line['driver']} version {line['driver_version']}, {line['device']}")


def baseline(s):
    """Without the shim: do the programs run here, twice the same, and do the tools work?"""
    for name in TORCH + ["triton_loop", "cupy_loop", "jax_program"]:
        command = s.workload(name) + ["--blocks", "3"]
        with s.item(f"{name}: twice the same") as say:
            lines = [s.measure(command), s.measure(command)]
            say(f"{lines[1]['median']:.3f} ms per step")
            s.record({"what": "baseline", "workload": name, "measure": lines[1]})
            same(name, lines)
        if name in TORCH:
            with s.item(f"{name}: runs with launches stubbed out") as say:
                line = s.measure(command, {"LD_PRELOAD": s.file("libstub_launch.so")})
                say(f"{line['median']:.3f} ms per step")
                s.record({"what": "baseline bound", "workload": name, "measure": line})
        with s.item(f"{name}: the audit counts") as say:
            say(describe(audit(s, command, {})))
    for app, options in APPS.items():
        with s.item(f"{app}: the three builds print the same"):
            outputs = {s.run([s.file(f"{app}_{b}")] + options).out
                       for b in ("driver", "static", "shared")}
            require(len(outputs) == 1, str(outputs))
    for mode in (["eager"], ["graph"], ["patch", "--vary"], ["pipelined", "--vary"]):
        with s.item("chain_bench " + " ".join(mode)) as say:
            line = s.measure([s.file("chain_bench"), "--sync", "--mode"] + mode)
            say(f"{line['median']:.1f} us")
            s.record(dict(line, what="baseline chain"))
    for bench in (["hold_cost", "--mode", "graph"], ["aside_cost"]):
        with s.item(" ".join(bench)) as say:
            line = s.measure([s.file(bench[0])] + bench[1:])
            say(f"{line['median']:.1f} ns")
    with s.item("gemm_loop: the audit counts") as say:
        say(describe(audit(s, [s.file("gemm_loop")], with_library(s, "libcublas.so", {}))))


def passthrough(s):
    """Four frameworks through the shim, off and on: equal results, and which calls it saw."""
    small = {"torch_mlp": ["--steps", "20", "--blocks", "2", "--warmup", "1"],
             "triton_loop": ["--steps", "10", "--blocks", "2", "--warmup", "1"],
             "cupy_loop": ["--steps", "20", "--blocks", "2", "--warmup", "1"],
             "jax_program": ["--steps", "20", "--blocks", "2", "--warmup", "1"]}
    for name, options in small.items():
        command = s.workload(name) + options
        plain = None
        with s.item(f"{name}: two runs without the shim are equal"):
            plain = s.measure(command)
            same(name, [plain, s.measure(command)])
        for mode in ("off", "observe", "on"):
            with s.item(f"{name}: AUTOGRAPH={mode} changes no result") as say:
                require(plain, "no run without the shim to compare with")
                stats_file = s.fresh(".json")
                line = s.measure(command, s.shim_env(mode, stats_file))
                require("autograph" in line["preload"], "the shim was not preloaded")
                same(name, [plain, line])
                if mode == "off":
                    continue
                stats = s.stats(stats_file)
                calls = calls_of(stats)
                require(calls, "no entry point was counted")
                say(f"{sum(calls.values())} calls of {len(calls)} entry points")
                s.record({"what": "calls", "workload": name, "mode": mode, "calls": calls,
                          "counters": counters(stats)})


def conformance(s):
    """The facts the shim relies on, asked of this driver: as expected, as on simcuda, as shimmed."""
    plain = s.out / "facts.txt"
    with s.item("conformance: every expectation holds") as say:
        done = facts_run(s, plain, {})
        (s.out / "conformance.log").write_text(done.out + done.err)
        say(f"{len(facts_of(plain))} facts; {tail(done.out, 1)}")
        require(done.code == 0, tail(failed_tests(done.out), 20))
    with s.item("conformance: the facts are those of the simulated driver") as say:
        say(compare_facts(facts_of(plain), facts_of(s.file("facts_simcuda.txt"))))
    with s.item("conformance: the facts are the same under the shim") as say:
        shimmed = s.fresh(".txt")
        facts_run(s, shimmed, s.shim_env())
        # How many launches fit into a queue is what holding changes.
        say(compare_facts(facts_of(plain, "depth."), facts_of(shimmed, "depth.")))


def facts_run(s, path, env):
    pathlib.Path(path).unlink(missing_ok=True)  # the program appends
    return s.run([s.file("conformance")] + s.args.conformance_argument,
                 dict(env, CONFORMANCE_OUT=str(path)), timeout=240, code=None)


def failed_tests(out):
    return "\n".join(line for line in out.splitlines() if line.startswith("[  FAILED  ]"))


def facts_of(path, but="reuse."):
    """NAME = VALUE lines, but for those that two drivers may answer differently."""
    listed = (ROOT / "tests" / "conformance" / "data" / "exceptions.txt").read_text().splitlines()
    differ = {line.split()[0] for line in listed if line and not line.startswith("#")}
    facts = {}
    for line in pathlib.Path(path).read_text().splitlines():
        name, _, value = line.partition(" = ")
        if name not in differ and not name.startswith(("reuse.", but)) and \
                not name.endswith("_that_closes_a_cycle"):
            facts[name] = value
    return facts


def compare_facts(one, other):
    require(len(one) >= 200, f"only {len(one)} facts")
    differ = [f"{n}: {one.get(n)} and {other.get(n)}" for n in sorted(set(one) | set(other))
              if one.get(n) != other.get(n)]
    require(not differ, f"{len(differ)} facts differ: " + "; ".join(differ[:20]))
    return f"{len(one)} facts equal"


def apps(s):
    """Four examples, three builds each: identical output, and the share of launches in graphs."""
    builds = ["driver"] if s.args.simcuda else ["driver", "static", "shared"]
    for app, options in (SIMULATED_APPS if s.args.simcuda else APPS).items():
        outputs = {}
        for build in builds:
            variants = {"": options}
            if app in APP_VARIANTS and build == "driver":
                variants[" " + " ".join(APP_VARIANTS[app])] = options + APP_VARIANTS[app]
            for suffix, arguments in variants.items():
                with s.item(f"{app}_{build}{suffix}") as say:
                    text = one_app(s, f"{app}_{build}", arguments, say)
                    if not suffix:
                        outputs[build] = text
        if len(builds) > 1:
            with s.item(f"{app}: the three builds print the same"):
                require(len(outputs) == 3, "not all builds ran")
                require(len(set(outputs.values())) == 1, str(outputs))


def one_app(s, name, arguments, say):
    command = [s.file(name)] + arguments
    plain = [s.run(command), s.run(command)]
    require(plain[0].out == plain[1].out, "two runs without the shim differ")
    stats_file = s.fresh(".json")
    shim = s.run(command, s.shim_env(stats=stats_file))
    require(shim.out == plain[0].out, f"with the shim: {tail(shim.out)}, "
                                      f"without: {tail(plain[0].out)}")
    count = counters(s.stats(stats_file))
    seconds = [seconds_of(plain[1]), seconds_of(shim)]
    say(f"{seconds[0]:.4f} s -> {seconds[1]:.4f} s")
    row = {"what": "app", "app": name, "arguments": arguments, "seconds_plain": seconds[0],
           "seconds_shim": seconds[1], "counters": count, "output": shim.out.strip()}
    if s.args.simcuda:
        share = simcuda_share(s, command)
    else:
        share = audit(s, command, s.shim_env())
    say(describe(share))
    row["share"] = {k: share[k] for k in ("kernels", "in_graphs", "share")}
    s.record(row)
    require(share["in_graphs"] > 0, "no kernel ran inside a graph")
    return shim.out


def simcuda_share(s, command):
    """The simulated driver's own account, in place of CUPTI's."""
    path = s.fresh(".json")
    s.run(command, dict(s.shim_env(), SIMCUDA_STATS=str(path)))
    stats = json.loads(path.read_text())
    eager = stats.get("kernels_eager", 0)
    graph = stats.get("kernels_in_graphs", stats.get("kernels_graph", 0))
    require(eager + graph > 0, f"the simulated driver ran no kernel: {stats}")
    return {"kernels": eager + graph, "in_graphs": graph, "share": graph / (eager + graph)}


def seconds_of(done):
    for line in done.err.splitlines():
        if line.endswith(" seconds"):
            return float(line.split()[-2])
    raise Failed("the program printed no time: " + tail(done.err))


def chain(s):
    """The chain against graphs written by hand and patched by an expert, and against eager."""
    bench = s.file("chain_bench")
    shim = s.shim_env()

    def command(*more):
        return [bench] + [str(m) for m in more]

    for kernels in s.args.kernels:
        size = ("--kernels", kernels, "--length", max(5, 6000 // kernels))
        long = ("--kernels", kernels, "--length", max(20, 24000 // kernels), "--blocks", 15)
        with s.item(f"chain of {kernels}, no sync: at most 1.02 of the faster graph") as say:
            by_name, _, lines = s.compare(f"chain {kernels} no sync", {
                "eager": (command(*long), {}),
                "graph1": (command(*long, "--mode", "graph"), {}),
                "graphN": (command(*long, "--mode", "graph", "--unroll", 8), {}),
                "shim": (command(*long), shim)})
            against(s, say, f"chain {kernels} no sync", by_name, lines, ["graph1", "graphN"], 1.02)
        with s.item(f"chain of {kernels}, sync per iteration: at most 1.10 of the graph") as say:
            by_name, _, lines = s.compare(f"chain {kernels} sync", {
                "eager": (command(*size, "--sync"), {}),
                "graph1": (command(*size, "--sync", "--mode", "graph"), {}),
                "shim": (command(*size, "--sync"), shim)})
            against(s, say, f"chain {kernels} sync", by_name, lines, ["graph1"], 1.10)
        with s.item(f"chain of {kernels}, all arguments change, sync: at most 0.9 of the "
                    "expert's patched graph") as say:
            vary = size + ("--sync", "--vary")
            by_name, _, lines = s.compare(f"chain {kernels} vary sync", {
                "eager": (command(*vary), {}),
                "patch": (command(*vary, "--mode", "patch"), {}),
                "pipelined": (command(*vary, "--mode", "pipelined"), {}),
                "shim": (command(*vary), shim)}, runs=max(s.args.runs, 15))  # both are bimodal
            against(s, say, f"chain {kernels} vary sync", by_name, lines, ["patch"], 0.9)
    with s.item("all arguments change, no sync: the right result") as say:
        by_name, _, _ = s.compare("chain 120 vary no sync", {
            "eager": (command("--vary"), {}),
            "rotated": (command("--vary", "--mode", "patch", "--execs", 3), {}),
            "shim": (command("--vary"), shim)}, runs=3)
        say(f"shim/rotated {by_name['shim']['median'] / by_name['rotated']['median']:.3f}")
    for sync in ([], ["--sync"]):
        with s.item(f"never-repeating launches {' '.join(sync)}: at most 1.02 of eager") as say:
            by_name, _, lines = s.compare(f"random {' '.join(sync)}", {
                "eager": (command("--random", *sync), {}),
                "shim": (command("--random", *sync), shim)})
            against(s, say, "random", by_name, lines, ["eager"], 1.02)
    with s.item("slow host, 20 us between launches, sync: at most 1.02 of eager") as say:
        slow = ("--host", 20000, "--kernels", 30, "--length", 20, "--sync")
        by_name, _, lines = s.compare("slow host", {"eager": (command(*slow), {}),
                                                "shim": (command(*slow), shim)})
        against(s, say, "slow host", by_name, lines, ["eager"], 1.02)


def mixed(s):
    """Every second op a memset, a device copy, an event record; and every tenth."""
    bench, shim = s.file("mixed_bench"), s.shim_env()
    for op in ("memset", "copy", "record"):
        for every, pairs in ((1, 32), (9, 12)):
            what = f"{op} after every {'kernel' if every == 1 else f'{every} kernels'}"
            base = [bench, "--op", op, "--every", str(every), "--pairs", str(pairs), "--length", "200"]
            with s.item(f"{what}: at most 1.1 of the best written by hand") as say:
                by_name, _, lines = s.compare(what, {
                    "eager": (base, {}),
                    "graph": (base + ["--mode", "graph"], {}),
                    "split": (base + ["--mode", "split"], {}),
                    "shim": (base, shim)})
                say("eager %.1f" % by_name["eager"]["median"])
                against(s, say, what, by_name, lines, ["graph", "split"], 1.1)
            with s.item(f"{what}: below eager") as say:
                against(s, say, what, by_name, lines, ["eager"], 1.0)


def overlap(s):
    """Batches from pinned memory and back in two streams, against a graph of two branches."""
    bench, shim = s.file("overlap_bench"), s.shim_env()
    for kernels, kib, sync in ((16, 256, []), (16, 256, ["--sync"]), (64, 64, ["--sync"])):
        base = [bench, "--kernels", str(kernels), "--kib", str(kib), "--length", "100"] + sync
        what = f"{kernels} kernels a batch of {kib} KiB{', sync' if sync else ''}"
        with s.item(f"{what}: at most 1.05 of the graph by hand") as say:
            by_name, _, lines = s.compare(what, {"eager": (base, {}),
                                                 "graph": (base + ["--graph"], {}),
                                                 "shim": (base, shim)})
            against(s, say, what, by_name, lines, ["graph"], 1.05)
        with s.item(f"{what}: below eager") as say:
            against(s, say, what, by_name, lines, ["eager"], 1.0)


def streams(s):
    """Several streams in turn, and forked and joined, against a graph of branches and graphs of chains."""
    bench, shim = s.file("streams_bench"), s.shim_env()
    for pattern, streams_used, rounds, run in (("turns", 2, 16, 2), ("turns", 4, 16, 2), ("fork", 2, 8, 2),
                                               ("fork", 2, 4, 8), ("fork", 2, 2, 32), ("fork", 4, 4, 8)):
        for sync in ([], ["--sync"]):
            base = [bench, "--pattern", pattern, "--streams", str(streams_used), "--rounds", str(rounds),
                    "--run", str(run), "--length", "100"] + sync
            what = f"{pattern}, {streams_used} streams, {rounds} times {run} kernels{', sync' if sync else ''}"
            with s.item(f"{what}: at most 1.1 of the best written by hand") as say:
                by_name, _, lines = s.compare(what, {"eager": (base, {}),
                                                     "graph": (base + ["--mode", "graph"], {}),
                                                     "split": (base + ["--mode", "split"], {}),
                                                     "shim": (base, shim)})
                say("eager %.1f, graph %.1f, split %.1f" %
                    tuple(by_name[k]["median"] for k in ("eager", "graph", "split")))
                against(s, say, what, by_name, lines, ["graph", "split"], 1.1)
            with s.item(f"{what}: below eager") as say:
                against(s, say, what, by_name, lines, ["eager"], 1.0)


def against(s, say, what, by_name, lines, rivals, limit):
    """The shim over the best rival, turn by turn: what runs in one turn runs on the same processors."""
    best = min(rivals, key=lambda r: by_name[r]["median"])
    value = in_turns(lines, "shim", best)
    result = {"ratio": f"shim/{best}", "value": round(value, 4), "sign": "<=", "limit": limit,
              "of_medians": round(by_name["shim"]["median"] / by_name[best]["median"], 4),
              "met": value <= limit}
    say(f"shim {by_name['shim']['median']:.1f}, {best} {by_name[best]['median']:.1f}; {value:.3f} in turns, "
        f"{result['of_medians']:.3f} of the medians")
    s.record(dict(result, what=what))
    limits([result])


def hotpath(s):
    """What a launch costs its thread inside the shim: held, and stepped aside from."""
    hold = s.file("hold_cost")
    with s.item("a held, matching launch costs at most 120 ns of the shim's own") as say:
        stats_file = s.fresh(".json")
        s.measure([hold], s.shim_env(stats=stats_file))
        stats = s.stats(stats_file)
        count = counters(stats)
        require(count["graph_launches"], "nothing was replayed: " + json.dumps(count))
        nodes = max(1, round(count["launches_replayed"] / count["graph_launches"]))
        say(f"graphs of {nodes} on average")
        by_name, _, _ = s.compare("hold_cost", {
            "graphs": ([hold, "--mode", "graph", "--nodes", nodes], {}),
            "held": ([hold], s.shim_env()),
            "eager": ([hold, "--launches", 500], {})})
        own = by_name["held"]["median"] - by_name["graphs"]["median"]
        say(f"held {by_name['held']['median']:.1f} ns, driver {by_name['graphs']['median']:.1f} ns, "
            f"own {own:.1f} ns")
        s.record({"what": "hold_cost", "own_ns": own, "nodes": nodes, "counters": count})
        require(own <= 120, f"{own:.1f} ns")
    with s.item("the same over a driver that does nothing: at most 120 ns") as say:
        over_null_driver(s, say, "hold_cost", 120)
    with s.item("a launch stepped aside from costs at most 25 ns, over a driver that does nothing") as say:
        over_null_driver(s, say, "aside_cost", 25)
    aside = s.file("aside_cost")
    with s.item("a launch stepped aside from, over the real driver: reported") as say:
        by_name, _, _ = s.compare("aside_cost", {
            "plain": ([aside], {}), "shim": ([aside], s.shim_env())})
        own = by_name["shim"]["median"] - by_name["plain"]["median"]
        low = by_name["shim"]["p10"] - by_name["plain"]["p10"]
        say(f"median {own:+.1f} ns, tenth percentile {low:+.1f} ns of "
            f"{by_name['plain']['median']:.0f} ns")
        s.record({"what": "aside_cost", "own_ns": own, "own_ns_p10": low})
    with s.item("a launch of a shape never seen before: reported") as say:
        by_name, _, _ = s.compare("aside_cost new", {
            "plain": ([aside, "--new"], {}), "shim": ([aside, "--new"], s.shim_env())}, runs=5)
        say(f"{by_name['shim']['median'] - by_name['plain']['median']:+.1f} ns")


def over_null_driver(s, say, bench, limit):
    """A real launch varies by 400 ns; over a driver that does nothing (tools/bench/null) the shim's own share shows."""
    null = str(pathlib.Path(s.file("null/libcuda.so.1")).parent)
    # Measured, eager would win here: a launch costs nothing.
    pace = {"AUTOGRAPH_PACE": "prompt"} if bench == "hold_cost" else {}
    values = {"plain": [], "shim": []}
    for _ in range(max(s.args.runs, 11)):
        for name, env in (("plain", {}), ("shim", dict(s.shim_env(), **pace))):
            line = s.run([s.file(bench)], dict(env, LD_LIBRARY_PATH=null)).line()
            require(line["driver"].endswith("null/libcuda.so.1"), line["driver"])
            values[name].append(line["median"])
    middle = {name: statistics.median(v) for name, v in values.items()}
    own = middle["shim"] - middle["plain"]
    stats_file = s.fresh(".json")
    s.run([s.file(bench)], dict(s.shim_env(stats=stats_file), LD_LIBRARY_PATH=null, **pace))
    count = counters(s.stats(stats_file))
    say(f"plain {middle['plain']:.1f} ns, shim {middle['shim']:.1f} ns, own {own:.1f} ns "
        f"({min(values['shim']):.1f} to {max(values['shim']):.1f})")
    s.record({"what": bench + " over the null driver", "own_ns": own, "values": values,
              "counters": count})
    require(count["launches_held"] if bench == "hold_cost" else count["asides"],
            "the shim did something else: " + json.dumps(count))
    require(own <= limit, f"{own:.1f} ns")


def workload_section(s, name, wanted_speed=None, wanted_share=None, bound=True, options=(),
                     modules="torch"):
    """Equal results, speed-up, share in graphs, and the bound with launches stubbed out.

    `options` shorten the runs that are repeated; the share is of the program at its own length.
    """
    whole = s.workload(name)
    command = whole + list(options)
    with s.item(f"{name}: bitwise equal with and without") as say:
        by_name, _, lines = s.compare(name, {"plain": (command, {}), "shim": (command, s.shim_env())},
                                      timeout=180, modules=modules)
        same(f"{name} without the shim", lines["plain"])
        same(f"{name} with the shim", [lines["plain"][0]] + lines["shim"])
        require(all("libautograph.so" in line["preload"] for line in lines["shim"]),
                "the shim was not preloaded")
        require(all(line["shim_at_work"] for line in lines["shim"]), "the shim never held a launch")
        require(not any(line["shim_at_work"] for line in lines["plain"]), "a plain run had the shim")
        speed = in_turns(lines, "plain", "shim")
        of_medians = by_name["plain"]["median"] / by_name["shim"]["median"]
        of_minima = by_name["plain"]["min"] / by_name["shim"]["min"]
        say(f"{by_name['plain']['median']:.3f} -> {by_name['shim']['median']:.3f} ms, "
            f"{speed:.3f} times as fast in turns, {of_medians:.3f} by the medians, {of_minima:.3f} by the minima")
        s.record({"what": "speed", "workload": name, "speed": speed, "of_medians": of_medians,
                  "of_minima": of_minima})
        if wanted_speed:
            require(speed >= wanted_speed, f"{speed:.3f} times as fast, {wanted_speed} wanted")
    with s.item(f"{name}: share of kernels in graphs") as say:
        share = audit(s, whole, s.shim_env())
        say(describe(share))
        s.record({"what": "share", "workload": name, "audit": share})
        if wanted_share:
            require(share["share"] >= wanted_share, f"{share['share']:.3f}, {wanted_share} wanted")
    with s.item(f"{name}: the shim's own account") as say:
        stats_file = s.fresh(".json")
        s.measure(whole, s.shim_env(stats=stats_file), 180)
        stats = s.stats(stats_file)
        say(json.dumps(counters(stats)))
        s.record({"what": "statistics", "workload": name, "counters": counters(stats),
                  "eager": stats.get("eager"), "drains": stats.get("drains")})
    if not bound:
        return
    with s.item(f"{name}: bound with launches stubbed out") as say:
        by_name, _, _ = s.compare(f"{name} bound", {
            "bound": (command, {"LD_PRELOAD": s.file("libstub_launch.so")})}, runs=3, timeout=180,
            modules=modules)
        say(f"{by_name['bound']['median']:.3f} ms")


def chosen(s, name):
    return not s.args.only or any(o in name for o in s.args.only)


def torch(s):
    """Three trainings and an inference in PyTorch."""
    for name in filter(lambda n: chosen(s, n), TORCH):
        workload_section(s, name, wanted_share=SHARE_WANTED.get(name),
                         options=["--blocks", "5", "--warmup", "2"])


def frameworks(s):
    """Loops in Triton and CuPy must gain; a JAX program must be right."""
    if chosen(s, "triton_loop"):
        workload_section(s, "triton_loop", wanted_speed=1.5)
    if chosen(s, "cupy_loop"):
        workload_section(s, "cupy_loop", wanted_speed=1.3, bound=False, modules="numpy")
    for name, command, claim in (
            ("triton_jit", s.workload("triton_loop") + ["--jit"], "kernel[grid](...): reported"),
            ("jax_program", s.workload("jax_program"), "right")):
        if not chosen(s, name):
            continue
        with s.item(f"{name}: {claim}") as say:
            by_name, _, lines = s.compare(name, {
                "plain": (command, {}), "shim": (command, s.shim_env())})
            same(name, lines["plain"] + lines["shim"])
            say(f"{in_turns(lines, 'plain', 'shim'):.3f} times as fast in turns")


def pipeline(s):
    """Preparing a batch beside the training on the one before: four ways, one stream or two."""
    for name, batches in (("torch_pipeline", (4, 16)), ("torch_augment", (32,))):
        for batch in batches if chosen(s, name) else ():
            one = s.workload(name) + ["--batch", str(batch), "--blocks", "5", "--warmup", "2"]
            four_ways(s, f"{name}, batches of {batch}", one, one + ["--overlap"])


def four_ways(s, what, one, two):
    lines = {}
    with s.item(f"{what}: bitwise equal with and without, one stream and two") as say:
        by_name, _, lines = s.compare(what, {
            "one": (one, {}), "two": (two, {}),
            "one, shim": (one, s.shim_env()), "two, shim": (two, s.shim_env())}, timeout=180,
            modules="torch")
        for streams in ("one", "two"):
            same(f"{what} in {streams}", lines[streams] + lines[streams + ", shim"])
            require(all(line["shim_at_work"] for line in lines[streams + ", shim"]),
                    "the shim never held a launch")
        rates = {name: 1000 / by_name[name]["median"] for name in by_name}
        say("steps a second: " + ", ".join(f"{name} {rate:.1f}" for name, rate in rates.items()))
        s.record({"what": "pipeline", "workload": what, "steps_per_second": rates})
    with s.item(f"{what}: two streams under the shim are the fastest") as say:
        require(lines, "not measured")
        gains = {name: in_turns(lines, name, "two, shim") for name in ("one", "two", "one, shim")}
        say(", ".join(f"{gain:.3f} times {name}" for name, gain in gains.items()))
        require(min(gains.values()) >= 1, json.dumps(gains))
    for label, command in (("one", one), ("two", two)):
        with s.item(f"{what}, {label}: share of kernels in graphs") as say:
            share = audit(s, command, s.shim_env())
            say(describe(share))
            s.record({"what": "share", "workload": f"{what}, {label}", "audit": share})


def cublas(s):
    """cuBLAS hands over its arguments through `extra`: those launches enter graphs too."""
    command = [s.file("gemm_loop")]
    plain_env = with_library(s, "libcublas.so", {})
    shim_env = dict(plain_env, **s.shim_env())
    kinds = {}
    with s.item("gemm_loop: cuBLAS launches through extra") as say:
        for kind in ("f32", "tf32", "f16", "bf16"):
            counts = s.fresh(".json")
            s.run(command + ["-t", kind], dict(plain_env, LD_PRELOAD=s.file("libstub_launch.so"),
                                               AG_STUB="count", AG_STUB_FILE=str(counts)))
            kinds[kind] = json.loads(counts.read_text())
        say(json.dumps(kinds))
        s.record({"what": "cublas launches", "kinds": kinds})
        require(any(k["launches_with_extra"] > 0 for k in kinds.values()),
                "no launch through extra was seen")
    for more in ([], ["-s"], ["-t", "tf32"], ["-t", "f16"], ["-t", "bf16"]):
        label = " ".join(["gemm_loop"] + more)
        with s.item(f"{label}: the same result, launches in graphs") as say:
            plain = [s.run(command + more, plain_env) for _ in range(2)]
            require(plain[0].out == plain[1].out, "two runs without the shim differ")
            shim = s.run(command + more, shim_env)
            require(shim.out == plain[0].out, f"{shim.out.strip()} is not {plain[0].out.strip()}")
            times = [json.loads(d.err.strip().splitlines()[-1])["median"] for d in (plain[1], shim)]
            say(f"{times[0]:.1f} -> {times[1]:.1f} us per 24 products")
            share = audit(s, command + more, shim_env)
            say(describe(share))
            s.record({"what": label, "us_plain": times[0], "us_shim": times[1], "audit": share})
            require(share["in_graphs"] > 0, "no kernel ran inside a graph")


SECTIONS = {
    "baseline": baseline,
    "passthrough": passthrough,
    "conformance": conformance,
    "apps": apps,
    "chain": chain,
    "mixed": mixed,
    "overlap": overlap,
    "streams": streams,
    "hotpath": hotpath,
    "torch": torch,
    "frameworks": frameworks,
    "pipeline": pipeline,
    "cublas": cublas,
}


def arguments():
    p = argparse.ArgumentParser(prog="tests/gpu/run.sh", description=__doc__.splitlines()[0],
                                epilog="sections: " + ", ".join(
                                    f"{n} ({f.__doc__.splitlines()[0]})"
                                    for n, f in SECTIONS.items()))
    p.add_argument("sections", nargs="+", choices=list(SECTIONS), metavar="SECTION")
    root = pathlib.Path(os.path.abspath(__file__)).parents[2]
    p.add_argument("--prebuilt", default=os.environ.get("AG_PREBUILT", str(root / ".carry")))
    p.add_argument("--out", default=os.environ.get("OUT", "gpu-results"))
    p.add_argument("--budget", type=float, default=560, help="seconds for the whole call")
    p.add_argument("--runs", type=int, default=7, help="interleaved runs of a comparison")
    p.add_argument("--kernels", type=lambda t: [int(n) for n in t.split(",")], default=[120],
                   help="chain lengths, with commas")
    p.add_argument("--only", type=lambda t: t.split(","), default=[],
                   help="torch, frameworks: programs whose name contains one of these, with commas")
    p.add_argument("--shim-option", action="append", default=[], metavar="KEY=VALUE",
                   help="environment of the runs with the shim")
    p.add_argument("--conformance-argument", action="append", default=[])
    p.add_argument("--simcuda", metavar="FOLDER", help="run on the simulated driver in it: no "
                   "time means anything then, but what needs no framework can be tried")
    p.add_argument("--dry-run", action="store_true", help="print what would be run; all fails")
    return p.parse_args()


def main():
    args = arguments()
    s = Session(args)
    print(f"commit {s.commit}, prebuilt {s.prebuilt}, results {s.out}")
    driver_first(s)
    for name in args.sections:
        print(f"== {name}: {SECTIONS[name].__doc__.splitlines()[0]}")
        try:
            SECTIONS[name](s)
        except Failed as e:
            with s.item(name):
                raise e
    return s.finish()


if __name__ == "__main__":
    sys.exit(main())
