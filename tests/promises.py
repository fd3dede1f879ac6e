#!/usr/bin/env python3
"""tests/promises.py - is every promise of the contract guarded by a test that notices when it is broken?

Called by  people                        Calls  bazel, the test binaries named below
Promise    exit status 0 only if every named test passes with the sound library and, with the library whose promise is
           broken, fails by a failed expectation. A test that is skipped, or that matches nothing, is no proof
Start at   GUARDS

promises.py [--only NAME,NAME] [--bazel="STARTUP OPTIONS"] [--build="OPTIONS"] [--verbose]
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

SCENARIOS = "tests/scenarios/scenarios_test"
MORE = "tests/scenarios/more_test"
RESOLVER = "tests/resolver/resolver_test"

# promise, what is broken (its #ifdef says how), test binary, test
GUARDS = [
    ("C1", "LOST_OP", SCENARIOS, "O01.*"),
    ("C1", "DOUBLED_OP", SCENARIOS, "O01.*"),
    ("C1", "SWAPPED_OPS", SCENARIOS, "O48.C1AModuleUnloaded*"),
    ("C1", "STALE_ARGUMENT", SCENARIOS, "O02.*"),
    ("C1", "LAYOUT_KEPT", SCENARIOS, "O48.C1AHandle*"),
    ("C1", "ATTRIBUTE_IGNORED", SCENARIOS, "O47.C1AnAttribute*"),
    ("C1", "RECORD_DROPPED", MORE, "Records.C1OfADense*"),
    ("C1", "RECORD_ELIDED", MORE, "Records.C1OfADense*"),
    ("C1", "RECORD_STALE", MORE, "Records.C1OfAnEventThatCameBack*"),
    ("C1", "RECORD_GENERATION", MORE, "Records.C1OfAnEventThatCameBack*"),
    ("C1", "RECORD_EARLY", MORE, "Turns.C1ThatWait*"),
    ("C1", "WAIT_DROPPED", MORE, "Turns.C1OfStreamsThat*"),
    ("C1", "WAIT_PASSED", MORE, "Turns.C1OfStreamsThat*"),
    ("C2", "IGNORED_STATUS", SCENARIOS, "O49.*"),
    ("C2", "LAYOUT_KEPT", SCENARIOS, "O25.C2*"),
    ("C2", "STREAM_KEPT", SCENARIOS, "O32.C2ADestroyed*"),
    ("C2", "STICKY_MISSED", SCENARIOS, "O33.C2AFaultOfAReplayed*"),
    ("C2", "FILL_UNPROVEN", MORE, "Memsets.C2*"),
    ("C3", "NO_DRAIN_AT_SYNC", SCENARIOS, "Promise.C3*"),
    ("C3", "NO_DRAIN_BUT_AT_SYNC", SCENARIOS, "O12.*"),
    ("C3", "NO_DRAIN_BUT_AT_SYNC", SCENARIOS, "O24.C3AFreeFindsTheHeldLaunchesSubmitted"),
    ("C3", "RECORD_LATE", MORE, "Records.C3*"),
    ("C3", "UNKNOWN_PASSES", SCENARIOS, "O46.C3ACallThatTheShim*"),
    ("C3", "CAPTURE_IGNORED", SCENARIOS, "O07.*"),
    ("C4", "NO_LIVENESS", SCENARIOS, "O19.C4AKernel*"),
    ("C4", "FILL_LOADED_AT_ONCE", MORE, "Memsets.C4*"),
    ("C5", "NO_STEP_ASIDE", SCENARIOS, "Promise.C5SequencesThatDieYoung*"),
    ("C6", "UNBOUNDED", SCENARIOS, "Promise.C6ManySequences*"),
    ("C6", "UNBOUNDED", SCENARIOS, "Promise.C6TheMemoryForGraphs*"),
    ("C6", "FAILURE_TOLD", SCENARIOS, "O34/InternalFailure.*"),
    ("C6", "PRINTS", SCENARIOS, "Promise.C6WithoutALog*"),
    ("C7", "EARLY_START", SCENARIOS, "Promise.C7AProgramWithoutCuda*"),
    ("C7", "EARLY_START", SCENARIOS, "Promise.C7AProcessWithoutCuda*"),
    ("C7", "EARLY_START", RESOLVER, "Inert.ProcessWithoutADriver*"),
    ("C7", "NAMES_ALWAYS", RESOLVER, "Inert.ProcessWithoutADriver*"),
    ("C7", "FORK_LOCKS", SCENARIOS, "Promise.C7AForkedChildIsNotBlocked*"),
]


def build(args, targets):
    """Builds, and returns bazel-bin."""
    bazel = ["bazel"] + shlex.split(args.bazel)
    options = shlex.split(args.build)
    quiet = None if args.verbose else subprocess.DEVNULL
    subprocess.run(bazel + ["build"] + options + targets, check=True, stdout=quiet, stderr=quiet)
    return subprocess.run(bazel + ["info"] + options + ["bazel-bin"], check=True, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.strip()


def run(bin_dir, binary, library, test):
    """Runs the tests against the library. Returns (green, red, text); green and red are counts."""
    runfiles = os.path.join(bin_dir, binary + ".runfiles", "autograph")
    with tempfile.TemporaryDirectory(prefix="ag-promises-") as root:
        tree = os.path.join(root, "autograph")
        os.mkdir(tree)
        for name in os.listdir(runfiles):
            if name != "libautograph.so":
                os.symlink(os.path.join(runfiles, name), os.path.join(tree, name))
        os.symlink(os.path.realpath(library), os.path.join(tree, "libautograph.so"))
        os.mkdir(os.path.join(root, "tmp"))
        env = dict(os.environ, TEST_SRCDIR=root, TEST_TMPDIR=os.path.join(root, "tmp"))
        text = subprocess.run([os.path.join(bin_dir, binary), "--gtest_filter=" + test], cwd=tree, env=env, text=True,
                              errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    return len(re.findall(r"^\[       OK \] ", text, re.M)), re.findall(r"^\[  FAILED  \] ([^\s,]+).* ms\)$", text, re.M), text


def first_line(text):
    """What the first failed expectation said."""
    found = re.search(r"^\S+: Failure\n((?:.*\n){1,3})", text, re.M)
    return " ".join(found[1].split())[:90] if found else "no expectation failed"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="mutants, with commas")
    parser.add_argument("--bazel", default="", help="startup options of bazel")
    parser.add_argument("--build", default="", help="options of bazel build")
    parser.add_argument("--verbose", action="store_true", help="show what bazel and the failed tests say")
    args = parser.parse_args()
    only = [name for name in args.only.split(",") if name]
    guards = [g for g in GUARDS if not only or g[1] in only]
    bin_dir = build(args, sorted({"//" + os.path.dirname(g[2]) + ":" + os.path.basename(g[2]) for g in guards}) +
                    sorted({"//tests/differential:mutant_%s.so" % g[1] for g in guards}))
    bad = []
    for binary, test in sorted({g[2:] for g in guards}):
        green, red, text = run(bin_dir, binary, os.path.join(bin_dir, "libautograph.so"), test)
        print("%-9s %-20s %-8s %s" % ("sound", "-", "green" if green and not red else "RED", test), flush=True)
        if red or not green:
            bad.append("sound library, " + test)
            print(text)
    for promise, mutant, binary, test in guards:
        start = time.time()
        library = os.path.join(bin_dir, "tests/differential/mutant_%s.so" % mutant)
        green, red, text = run(bin_dir, binary, library, test)
        caught = red and "Failure\n" in text
        print("%-9s %-20s %-8s %s (%.0f s): %s" %
              (promise, mutant, "red" if caught else "SURVIVES", red[0] if red else test, time.time() - start,
               first_line(text)), flush=True)
        if not caught:
            bad.append("%s, %s" % (mutant, test))
        if args.verbose:
            print(text)
    print("%d pairs of promise and mutant, %d red%s" %
          (len(guards), len(guards) - len([b for b in bad if not b.startswith("sound")]),
           "; NOT GOOD: " + "; ".join(bad) if bad else ", sound library green"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
