"""One call of run.sh: where files are, how programs are run, what passed, what was recorded.

Called by sections.py. Each item is a function; whatever it raises makes that item fail and the next
one run. Time is bounded twice: a limit for each program, a deadline for the whole call.
"""
import contextlib
import json
import os
import pathlib
import re
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(os.path.abspath(__file__)).parents[2]
sys.path.insert(0, str(ROOT / "tools" / "bench"))
import interleave  # noqa: E402  (beside the benchmarks, for use without this runner)


class Failed(Exception):
    """Why an item failed; the text is for the user."""


class Done:
    """A program that has ended."""

    def __init__(self, process, seconds):
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr
        self.seconds = seconds

    def line(self):
        """The last JSON line on standard output."""
        lines = [t for t in self.out.splitlines() if t.startswith("{")]
        if not lines:
            raise Failed("printed no measurement: " + tail(self.out + self.err))
        return json.loads(lines[-1])


def tail(text, lines=4):
    return " | ".join(text.strip().splitlines()[-lines:])[-600:]


class Warm:
    """A process that has imported the frameworks and runs programs in forked children; one for each environment."""

    def __init__(self, env, modules):
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests" / "gpu" / "warm.py"), modules], env=env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, errors="replace")
        self.ready = False

    def answer(self, timeout):
        ready, _, _ = select.select([self.process.stdout], [], [], timeout)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            self.process.kill()
            raise interleave.Trouble(f"no answer within {timeout:.0f} s")
        return json.loads(line)

    def run(self, argv, timeout):
        if not self.ready:
            self.answer(60)
            self.ready = True
        self.process.stdin.write(json.dumps([str(a) for a in argv]) + "\n")
        self.process.stdin.flush()
        return self.answer(timeout)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class WarmVariant(interleave.Variant):
    """A variant whose runs are forked from warm processes in rotation: a property of one, where its memory lies, say, is
    in all of its children."""

    PROCESSES = 3

    def __init__(self, name, env, command, modules):
        super().__init__(name, env, command)
        full = dict(os.environ)
        full.update(env)
        self.warm = [Warm(full, modules) for _ in range(self.PROCESSES)]

    def follow(self, processors):
        os.sched_setaffinity(self.warm[0].process.pid, processors)

    def run(self, timeout):
        self.warm.append(self.warm.pop(0))
        done = self.warm[-1].run(self.command[1:], timeout)
        if done["code"] != 0:
            tail_ = (done["err"] or done["out"]).strip().splitlines()[-3:]
            raise interleave.Trouble(f"{self.name}: exit {done['code']}: {' | '.join(tail_)}")
        lines = [json.loads(t) for t in done["out"].splitlines() if t.startswith("{")]
        if not lines:
            raise interleave.Trouble(f"{self.name}: printed no measurement")
        self.lines.extend(lines)
        return lines

    def close(self):
        for w in self.warm:
            w.close()


class Session:
    """State of the call; sections use run(), compare(), record() and item()."""

    def __init__(self, args):
        self.args = args
        self.prebuilt = pathlib.Path(args.prebuilt).resolve()
        self.out = pathlib.Path(args.out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="autograph-gpu-"))
        self.deadline = time.monotonic() + args.budget
        self.passed, self.failed = 0, 0
        self.trouble = []
        self.results = (self.out / "results.jsonl").open("a", encoding="utf-8")
        self.shim = self.prebuilt / "libautograph.so"
        commit = self.prebuilt / "COMMIT"
        self.commit = commit.read_text().strip() if commit.exists() else "unknown"
        self.driver = None
        self.counter = 0

    # ---- files and environments ----

    def file(self, name):
        path = self.prebuilt / name
        if not path.exists():
            raise Failed(f"{name} is not among the prebuilt files")
        return str(path)

    def workload(self, name):
        return [sys.executable, str(ROOT / "tests" / "gpu" / "workloads" / (name + ".py"))]

    def fresh(self, suffix):
        self.counter += 1
        return self.scratch / f"{self.counter}{suffix}"

    def base_env(self):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith("AUTOGRAPH") and k != "LD_PRELOAD"}
        # libcudart for the shared builds; a folder for the simulated driver only when asked.
        paths = [str(self.prebuilt / "lib")]
        if self.args.simcuda:
            paths.insert(0, str(pathlib.Path(self.args.simcuda).resolve()))
        if env.get("LD_LIBRARY_PATH"):
            paths.append(env["LD_LIBRARY_PATH"])
        env["LD_LIBRARY_PATH"] = ":".join(paths)
        return env

    def shim_env(self, mode="on", stats=None):
        env = {"LD_PRELOAD": self.file("libautograph.so"), "AUTOGRAPH": mode}
        if stats:
            env["AUTOGRAPH_STATS"] = str(stats)
        for pair in self.args.shim_option:
            key, value = pair.split("=", 1)
            env[key] = value
        return env

    # ---- running ----

    def left(self):
        return self.deadline - time.monotonic()

    def run(self, command, env=None, timeout=120, code=0):
        """Runs a program to its end; another exit code than the expected one (None: any) fails."""
        full = self.base_env()
        full.update(env or {})
        limit = min(timeout, self.left())
        if limit < 1:
            raise Failed("no time left")
        if self.args.dry_run:
            shown = {k: v for k, v in (env or {}).items()}
            raise Failed(f"dry run: {shown} {' '.join(map(str, command))}")
        began = time.monotonic()
        try:
            process = subprocess.run([str(c) for c in command], env=full, capture_output=True,
                                     text=True, errors="replace", timeout=limit, check=False)
        except subprocess.TimeoutExpired as e:
            raise Failed(f"{os.path.basename(str(command[0]))} ran past {limit:.0f} s") from e
        except OSError as e:
            raise Failed(str(e)) from e
        done = Done(process, time.monotonic() - began)
        if code is not None and done.code != code:
            raise Failed(f"{' '.join(os.path.basename(str(c)) for c in command[:3])}: exit "
                         f"{done.code}: {tail(done.err or done.out)}")
        return done

    def measure(self, command, env=None, timeout=120):
        """Runs a program that prints a JSON line, and insists on the driver it should use."""
        line = self.run(command, env, timeout).line()
        self.check_driver(line)
        return line

    def check_driver(self, line):
        real = interleave.driver_is_real(line)
        if real == bool(self.args.simcuda):
            raise Failed(f"ran on driver {line.get('driver')}, device {line.get('device')}: "
                         f"{'the simulated one' if self.args.simcuda else 'a real one'} is wanted")
        self.driver = {k: line.get(k) for k in ("driver", "driver_version", "device")}

    def compare(self, what, variants, ratios=(), runs=None, timeout=120, modules=None):
        """Interleaved runs of {name: (command, env)}; records them; returns medians by name. With modules, Python
        programs are forked from processes that have imported these."""
        if self.args.dry_run:
            raise Failed(f"dry run: {what}: {', '.join(variants)}")
        runs = runs or self.args.runs
        base = self.base_env()
        with environment(base):
            made = [WarmVariant(n, env, [str(c) for c in command], modules) if modules else
                    interleave.Variant(n, env, [str(c) for c in command])
                    for n, (command, env) in variants.items()]
            for turn in range(runs):
                self.one_turn(made, turn, runs, timeout)
        for v in made if modules else []:
            v.close()
        by_name = {v.name: v.summary() for v in made}
        for v in made:
            s = by_name[v.name]
            print(f"    {v.name:<14} median {s['median']:>10.3f}  min {s['min']:.3f}  "
                  f"max {s['max']:.3f}  iqr {s['iqr']:.3f}  {v.lines[0].get('unit', '')}")
            self.record(dict(s, what=what, measure=v.lines[0]))
        met = list(interleave.judge([interleave.parse_ratio(r) for r in ratios], by_name))
        for r in met:
            self.record(dict(r, what=what))
        return by_name, met, {v.name: v.lines for v in made}

    def one_turn(self, made, turn, runs, timeout):
        """Every variant once, on the same few processors; the next turn has others: they differ by up to two times."""
        mine = os.sched_getaffinity(0)
        os.sched_setaffinity(0, group_of(sorted(mine), turn))
        try:
            for v in made:
                if self.left() < 1:
                    raise Failed(f"no time left in run {turn + 1} of {runs}")
                v.follow(os.sched_getaffinity(0))
                for line in v.run(min(timeout, self.left())):
                    self.check_driver(line)
        except interleave.Trouble as e:
            raise Failed(str(e)) from e
        finally:
            os.sched_setaffinity(0, mine)

    # ---- results ----

    def record(self, row):
        row = dict(row, commit=self.commit, **(self.driver or {}))
        self.results.write(json.dumps(row, sort_keys=True) + "\n")
        self.results.flush()

    def stats(self, path):
        """The shim's statistics, which must exist: a run without them was a run without it."""
        if not pathlib.Path(path).exists():
            raise Failed("the shim wrote no statistics: was it loaded?")
        return json.loads(pathlib.Path(path).read_text())

    @contextlib.contextmanager
    def item(self, name):
        """with session.item("name") as say: ... - say(text) adds to the line that reports it."""
        notes = []
        began = time.monotonic()
        try:
            yield notes.append
        except (Failed, interleave.Trouble, KeyError, ValueError, OSError) as e:
            self.failed += 1
            reason = str(e) or type(e).__name__
            self.trouble.append(f"{name}: {reason}")
            print(f"FAIL  {name}: {reason}" + "".join(f"; {n}" for n in notes))
            self.record({"item": name, "passed": False, "reason": reason, "notes": notes})
            return
        self.passed += 1
        seconds = time.monotonic() - began
        print(f"ok    {name} ({seconds:.1f} s)" + "".join(f"; {n}" for n in notes))
        self.record({"item": name, "passed": True, "notes": notes, "seconds": round(seconds, 1)})

    def finish(self):
        for t in self.trouble:
            print(f"failed: {t}")
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.results.close()
        print(f"{self.passed} passed, {self.failed} failed")
        return 0 if self.failed == 0 and self.passed > 0 else 1


@contextlib.contextmanager
def environment(env):
    """os.environ is env inside; what interleave starts inherits it."""
    saved = dict(os.environ)
    os.environ.clear()
    os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(saved)


def group_of(processors, turn, size=4):
    """The processors of a turn: groups of `size` neighbours in rotation; all, where there are too few."""
    groups = len(processors) // size
    if groups < 2:
        return set(processors)
    at = turn % groups * size
    return set(processors[at:at + size])


def in_turns(lines, top, bottom):
    """The median over the turns of one variant's time as a multiple of another's."""
    ratios = [a["median"] / b["median"] for a, b in zip(lines[top], lines[bottom])]
    require(ratios, "no turn to compare")
    return statistics.median(ratios)


def require(condition, text):
    if not condition:
        raise Failed(text)


def limits(results):
    """Fails with every ratio that was missed."""
    missed = [f"{r['ratio']} is {r['value']}, limit {r['sign']} {r['limit']}"
              for r in results if not r["met"]]
    require(not missed, "; ".join(missed))


def library_folder(name):
    """The folder of NAME.12 or .13: of Python's wheels, or of the toolkit."""
    places = []
    for base in map(pathlib.Path, sys.path):
        places += sorted((base / "nvidia").glob("*/lib"))
    cuda = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    places += [cuda / "lib64", cuda / "extras" / "CUPTI" / "lib64"]
    for p in places:
        if any(re.fullmatch(re.escape(name) + r"\.1[23]", f.name) for f in p.glob("lib*")):
            return str(p)
    raise Failed(f"no {name} found in: " + ", ".join(map(str, places)))
