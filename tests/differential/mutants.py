#!/usr/bin/env python3
"""tests/differential/mutants.py - does the random differential alone find each planted fault of the shim?

Called by  people, tools/test.sh         Calls  bazel, //tests/differential:runner
Promise    exit status 0 only if the sound library passes and every mutant is caught within the given seeds

mutants.py [--seeds N] [--first S] [--only NAME,NAME] [--jobs N] [--bazel="STARTUP OPTIONS"] [--build="OPTIONS"]
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import time

NAMES = ["GENERATION_IGNORED", "LOST_OP", "DOUBLED_OP", "STALE_ARGUMENT", "SWAPPED_OPS", "NO_DRAIN_AT_SYNC", "NO_LIVENESS",
         "LAYOUT_KEPT", "ATTRIBUTE_IGNORED", "IGNORED_STATUS", "FILL_UNPROVEN", "FILL_LOADED_AT_ONCE",
         "RECORD_DROPPED", "RECORD_LATE", "RECORD_ELIDED", "RECORD_STALE", "RECORD_GENERATION",
         "WAIT_DROPPED", "WAIT_PASSED", "LEGACY_JOINED"]


def build(args, targets):
    """Builds and returns bazel-bin of the sound configuration."""
    bazel = ["bazel"] + shlex.split(args.bazel)
    options = shlex.split(args.build)
    subprocess.run(bazel + ["build"] + options + targets, check=True, stdout=subprocess.DEVNULL,
                   stderr=None if args.verbose else subprocess.DEVNULL)
    return subprocess.run(bazel + ["info"] + options + ["bazel-bin"], check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.strip()


def hunt(args, bin_dir, library, seeds, limit):
    """Runs the differential until it fails. Returns (seed or None, what it saw, text of the summary)."""
    command = [os.path.join(bin_dir, "tests/differential/runner"), "--shim", library, "--first", str(args.first),
               "--seeds", str(seeds), "--stop-after", "1", "--no-shrink", "--jobs", str(args.jobs),
               "--chunk", "10", "--limit", str(limit)]
    text = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    found = re.search(r"^seed (\d+): (.*)$", text, re.M)
    summary = re.search(r"^programs .*$", text, re.M)
    if not summary:
        raise SystemExit("the runner said:\n" + text)
    return (int(found[1]) if found else None), (found[2] if found else ""), summary[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--only", default=",".join(NAMES))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--bazel", default="", help="startup options of bazel")
    parser.add_argument("--build", default="", help="options of bazel build")
    parser.add_argument("--sound-seeds", type=int, default=200, help="how many the sound library must pass first")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()

    names = args.only.split(",")
    bin_dir = build(args, ["//tests/differential:runner"] +
                    ["//tests/differential:mutant_%s.so" % n for n in names])
    seed, why, summary = hunt(args, bin_dir, os.path.join(bin_dir, "libautograph.so"), args.sound_seeds, 30)
    print("%-20s %s" % ("sound library", "FAILS at seed %s: %s" % (seed, why) if seed else "passes, " + summary),
          flush=True)
    survivors = ["sound library"] if seed else []
    for name in names:
        start = time.time()
        library = os.path.join(bin_dir, "tests/differential/mutant_%s.so" % name)
        seed, why, summary = hunt(args, bin_dir, library, args.seeds, 5)
        if seed is None:
            survivors.append(name)
            print("%-20s SURVIVES %d programs (%s)" % (name, args.seeds, summary), flush=True)
        else:
            print("%-20s caught by program %d (%.0f s): %s" %
                  (name, seed - args.first + 1, time.time() - start, why[:200]), flush=True)
    print("%d mutants, %d caught%s" % (len(names), len(names) - len([s for s in survivors if s in names]),
                                       "" if not survivors else "; NOT GOOD: " + ", ".join(survivors)))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
