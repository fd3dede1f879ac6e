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

LAUNCHES, FEW, MANY = 2000, 5, 25
NAME = re.compile(r"(?:c?ob|c?f[nile]+)=\((\d+)\)(?: (.*))?")


def cost_by_object(path):
    """Own instructions by object file, from a callgrind output file."""
    names, current, skip, total = {}, "?", False, {}
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith(("ob=", "cob=")):
            number, name = NAME.match(line).groups()
            if name:
                names[number] = name
            if line.startswith("ob="):
                current = names[number]
        elif line.startswith("calls="):
            skip = True  # the next line is the callee's cost, counted where the callee stands
        elif line[:1].isdigit() or line[:1] in "+-*":
            if not skip:
                total[current] = total.get(current, 0) + int(line.split()[-1])
            skip = False
    return total


def count(folder, program, options, rounds, shim):
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch, "callgrind.out")
        env = dict(os.environ, LD_LIBRARY_PATH=str(folder / "simcuda"))
        if shim:
            env["LD_PRELOAD"] = str(folder / "libautograph.so")
        loop = program.split("_")[0] + "_loop*"  # the compiler may have made a clone of it
        command = ["valgrind", "--tool=callgrind", f"--toggle-collect={loop}",
                   f"--callgrind-out-file={out}", str(folder / program), *options,
                   "--launches", str(LAUNCHES), "--rounds", str(rounds)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"callgrind.py: {program}: {done.stderr.strip()[-800:]}")
        # One file for all threads, and only the launching thread enters the loop.
        return cost_by_object(out)


def per_launch(folder, program, options, shim):
    few = count(folder, program, options, FEW, shim)
    many = count(folder, program, options, MANY, shim)
    launches = LAUNCHES * (MANY - FEW)
    return {os.path.basename(o): round((c - few.get(o, 0)) / launches, 1)
            for o, c in many.items() if c - few.get(o, 0) > launches // 100}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1])
    folder = pathlib.Path(sys.argv[1]).resolve()
    for program, options in (("hold_cost", []), ("aside_cost", []), ("aside_cost", ["--new"])):
        for shim in (False, True):
            objects = per_launch(folder, program, options, shim)
            row = {"bench": " ".join([program] + options), "unit": "instructions per launch",
                   "shim": shim, "in_shim": objects.get("libautograph.so", 0), "objects": objects}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
