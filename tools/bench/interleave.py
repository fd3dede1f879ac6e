#!/usr/bin/env python3
"""Runs variants of a measurement in turn (A B C A B C ...) and compares their medians.

Each variant is a command that prints JSON lines with a member "median". The machine's state drifts;
taking turns lets the drift fall on all variants alike. Usage:

  interleave.py [--runs N] [--out FILE] [--commit ID] [--expect-driver real|simcuda]
                [--timeout SECONDS] --variant NAME [KEY=VALUE...] -- COMMAND... \
                [--variant ...] [--ratio A/B<=1.02 ...]

KEY=VALUE before the -- is environment of that variant alone. A ratio is judged on the medians over
the runs. Exits with 1 when a run fails, a variant printed nothing, the driver is not the expected
one, or a ratio is missed.
"""
import json
import os
import re
import statistics
import subprocess
import sys


class Trouble(Exception):
    """Why the comparison cannot stand; the text is for the user."""


class Variant:
    """A command, its environment, and what it printed so far."""

    def __init__(self, name, env, command):
        self.name = name
        self.env = env
        self.command = command
        self.lines = []

    def follow(self, processors):
        """Its processes inherit the caller's processors by themselves."""

    def run(self, timeout):
        env = dict(os.environ)
        env.update(self.env)
        try:
            done = subprocess.run(self.command, env=env, capture_output=True, text=True,
                                  timeout=timeout, check=False)
        except (OSError, subprocess.TimeoutExpired) as e:
            raise Trouble(f"{self.name}: {e}") from e
        if done.returncode != 0:
            tail = (done.stderr or done.stdout).strip().splitlines()[-3:]
            raise Trouble(f"{self.name}: exit {done.returncode}: {' | '.join(tail)}")
        lines = [json.loads(t) for t in done.stdout.splitlines() if t.startswith("{")]
        if not lines:
            raise Trouble(f"{self.name}: printed no measurement")
        self.lines.extend(lines)
        return lines

    def summary(self):
        medians = [line["median"] for line in self.lines]
        quarters = [medians[0]] * 3
        if len(medians) > 1:
            quarters = statistics.quantiles(medians, n=4, method="inclusive")
        return {
            "variant": self.name,
            "runs": len(medians),
            "median": statistics.median(medians),
            "min": min(medians),
            "max": max(medians),
            "iqr": quarters[2] - quarters[0],
            "p10": statistics.median(line.get("p10", line["median"]) for line in self.lines),
            "env": self.env,
            "command": [os.path.basename(self.command[0])] + self.command[1:],
        }


def driver_is_real(line):
    """A real NVIDIA driver: not our simulator's file, and not its device name either."""
    path = os.path.realpath(line.get("driver", ""))
    return ("libcuda.so" in path and "simcuda" not in path
            and "sim" not in line.get("device", "").lower())


def check_driver(line, expected):
    if expected == "any":
        return
    real = driver_is_real(line)
    if real != (expected == "real"):
        raise Trouble(f"driver is {line.get('driver')} ({line.get('device')}), "
                      f"not {expected}")


def parse_ratio(text):
    m = re.fullmatch(r"([\w.+-]+)/([\w.+-]+)(<=|>=)([0-9.]+)", text)
    if not m:
        raise Trouble(f"--ratio {text}: not A/B<=NUMBER or A/B>=NUMBER")
    return m.group(1), m.group(2), m.group(3), float(m.group(4))


def judge(ratios, by_name):
    """Yields one JSON-able result for each ratio."""
    for top, bottom, sign, limit in ratios:
        missing = [n for n in (top, bottom) if n not in by_name]
        if missing:
            raise Trouble(f"ratio of unknown variant {missing[0]}")
        value = by_name[top]["median"] / by_name[bottom]["median"]
        met = value <= limit if sign == "<=" else value >= limit
        yield {"ratio": f"{top}/{bottom}", "value": round(value, 4), "sign": sign,
               "limit": limit, "met": met}


def compare(variants, runs, ratios, expect="any", timeout=120, say=print):
    """The comparison as a function: returns (summaries by name, ratio results)."""
    for _ in range(runs):
        for v in variants:
            for line in v.run(timeout):
                check_driver(line, expect)
    by_name = {v.name: v.summary() for v in variants}
    for s in by_name.values():
        say(f"  {s['variant']:<24} {s['median']:>10.3f}  min {s['min']:.3f} max {s['max']:.3f} "
            f"iqr {s['iqr']:.3f}  ({s['runs']} runs)")
    results = list(judge(ratios, by_name))
    for r in results:
        say(f"  {r['ratio']:<24} {r['value']:>10.4f}  {r['sign']} {r['limit']}  "
            f"{'met' if r['met'] else 'MISSED'}")
    return by_name, results


def where(line):
    return {k: line.get(k) for k in ("driver", "driver_version", "device")}


def parse(argv):
    opts = {"runs": 7, "out": None, "commit": None, "expect": "any", "timeout": 120}
    variants, ratios = [], []
    takes = {"--runs": ("runs", int), "--out": ("out", str), "--commit": ("commit", str),
             "--expect-driver": ("expect", str), "--timeout": ("timeout", float)}
    i = 0
    while i < len(argv):
        a = argv[i]
        if a in takes and i + 1 < len(argv):
            opts[takes[a][0]] = takes[a][1](argv[i + 1])
            i += 2
        elif a == "--ratio" and i + 1 < len(argv):
            ratios.append(parse_ratio(argv[i + 1]))
            i += 2
        elif a == "--variant":
            split = argv.index("--", i) if "--" in argv[i:] else None
            if split is None or split == i + 1:
                raise Trouble("--variant NAME [KEY=VALUE...] -- COMMAND...")
            end = split + 1
            while end < len(argv) and argv[end] not in ("--variant", "--ratio"):
                end += 1
            env = dict(kv.split("=", 1) for kv in argv[i + 2:split])
            variants.append(Variant(argv[i + 1], env, argv[split + 1:end]))
            i = end
        else:
            raise Trouble(f"unknown argument {a}")
    if not variants:
        raise Trouble("no --variant")
    return opts, variants, ratios


def main(argv):
    try:
        opts, variants, ratios = parse(argv)
        by_name, results = compare(variants, opts["runs"], ratios, opts["expect"],
                                   opts["timeout"])
    except Trouble as e:
        print(f"interleave: {e}", file=sys.stderr)
        return 1
    if opts["out"]:
        with open(opts["out"], "a", encoding="utf-8") as f:
            for v in variants:
                row = dict(by_name[v.name], commit=opts["commit"], **where(v.lines[0]))
                row["measure"] = {k: x for k, x in v.lines[0].items() if k not in row}
                f.write(json.dumps(row) + "\n")
            for r in results:
                f.write(json.dumps(r) + "\n")
    return 0 if all(r["met"] for r in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
