#!/usr/bin/env python3
"""Counts the instructions the shim spends on a launch, on the simulated driver under callgrind.

Usage: callgrind.py FOLDER      FOLDER holds hold_cost, aside_cost, libautograph.so and
                                simcuda/libcuda.so.1, as tests/gpu/carry.sh leaves them

Each program runs twice with different numbers of rounds; the difference between the two, divided by
the launches between them, has no start-up and no learning in it. Instructions are split by the
library they lie in, so the simulated driver's own are not counted for the shim.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LAUNCHES, SHOWN = 500, 12
# Measured rounds of the two runs; each program warms up before them.
PROGRAMS = (
    ("hold_cost", [], (4, 24)),
    ("aside_cost", [], (4, 24)),
    ("aside_cost", ["--new"], (4, 24)),
)
SHIM = "libautograph.so"
NAME = re.compile(r"c?(ob|fn)=\((\d+)\)(?: (.*))?")


def own_cost(path):
    """Own instructions by (object file, function), from a callgrind output file."""
    names, current, skip, total = {}, {"ob": "?", "fn": "?"}, False, {}
    for line in pathlib.Path(path).read_text().splitlines():
        named = NAME.match(line)
        if named:
            kind, number, name = named.groups()
            if name:
                names[kind, number] = name
            if not line.startswith("c"):
                current[kind] = names[kind, number]
        elif line.startswith("calls="):
            skip = True  # the next line is the callee's cost, counted where the callee stands
        elif line and (line[0].isdigit() or line[0] in "+-*"):
            if not skip:
                where = os.path.basename(current["ob"]), current["fn"]
                total[where] = total.get(where, 0) + int(line.split()[-1])
            skip = False
    return total


def count(folder, program, options, rounds, shim):
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch, "callgrind.out")
        env = dict(os.environ, LD_LIBRARY_PATH=str(folder / "simcuda"))
        if shim:
            env["LD_PRELOAD"] = str(folder / SHIM)
        loop = program.split("_")[0] + "_loop*"  # the compiler may have made a clone of it
        command = ["valgrind", "--tool=callgrind", f"--toggle-collect={loop}",
                   f"--callgrind-out-file={out}", str(folder / program), *options,
                   "--launches", str(LAUNCHES), "--rounds", str(rounds)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"callgrind.py: {program}: {done.stderr.strip()[-800:]}")
        # One file for all threads, and only the launching thread enters the loop.
        return own_cost(out)


def per_launch(folder, program, options, rounds, shim):
    few, many = (count(folder, program, options, r, shim) for r in rounds)
    launches = LAUNCHES * (rounds[1] - rounds[0])
    return {where: (cost - few.get(where, 0)) / launches for where, cost in many.items()}


def summary(cost):
    objects, functions = {}, {}
    for (library, function), n in cost.items():
        objects[library] = objects.get(library, 0) + n
        if library == SHIM:
            functions[function] = round(n, 1)
    most = sorted(functions, key=functions.get, reverse=True)[:SHOWN]
    return {"in_shim": round(objects.get(SHIM, 0), 1),
            "objects": {k: round(v, 1) for k, v in objects.items() if v >= 0.05},
            "shim_functions": {f: functions[f] for f in most if functions[f] >= 0.05}}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1])
    folder = pathlib.Path(sys.argv[1]).resolve()
    for program, options, rounds in PROGRAMS:
        cost = summary(per_launch(folder, program, options, rounds, shim=True))
        print(json.dumps(dict(bench=" ".join([program] + options),
                              unit="instructions per launch", **cost)), flush=True)


if __name__ == "__main__":
    main()
