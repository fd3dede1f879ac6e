#!/usr/bin/env python3
"""Prints the results of tests/gpu/run.sh as tables for docs/BENCHMARKS.md.

Usage: table.py RESULTS.jsonl...
"""
import json
import sys


def rows(paths):
    for path in paths:
        with open(path, encoding="utf-8") as f:
            for line in f:
                if line.strip():
                    yield json.loads(line)


def put(title, header, lines):
    if not lines:
        return
    print(f"\n### {title}\n\n| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for line in lines:
        print("| " + " | ".join(str(cell) for cell in line) + " |")


def measures(found):
    for r in found:
        if "variant" in r:
            yield (r["what"], r["variant"], f"{r['median']:.3f}", f"{r['min']:.3f}",
                   f"{r['max']:.3f}", f"{r['iqr']:.3f}", r["runs"],
                   r.get("measure", {}).get("unit", ""))


def ratios(found):
    for r in found:
        if "ratio" in r:
            yield (r["what"], r["ratio"], r["value"], f"{r['sign']} {r['limit']}",
                   "met" if r["met"] else "missed")


def shares(found):
    for r in found:
        audit = r.get("audit") or r.get("share")
        if isinstance(audit, dict) and "kernels" in audit:
            name = r.get("workload") or r.get("app") or r["what"]
            arguments = " ".join(r.get("arguments", []))
            yield (name, arguments, audit["kernels"], audit["in_graphs"], f"{audit['share']:.1%}")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    found = list(rows(sys.argv[1:]))
    places = sorted({(r["device"], r["driver"], r["driver_version"], r["commit"])
                     for r in found if r.get("device")}, key=str)
    for device, driver, version, commit in places:
        print(f"{device}, {driver}, version {version}, commit {commit}")
    put("Medians of interleaved runs", ["comparison", "variant", "median", "min", "max",
                                        "interquartile range", "runs", "unit"],
        list(measures(found)))
    put("Ratios", ["comparison", "ratio", "value", "limit", ""], list(ratios(found)))
    put("Kernels executed inside graphs", ["program", "arguments", "kernels", "in graphs", "share"],
        list(shares(found)))
    put("Speed-ups", ["program", "times as fast"],
        [(r["workload"], f"{r['speed']:.3f}") for r in found if r.get("what") == "speed"])
    items = [r for r in found if "item" in r]
    put("Items", ["item", "", "notes"],
        [(r["item"], "passed" if r["passed"] else "FAILED: " + r["reason"],
          "; ".join(r["notes"])) for r in items])
    print(f"\n{sum(r['passed'] for r in items)} passed, "
          f"{sum(not r['passed'] for r in items)} failed")


if __name__ == "__main__":
    main()
