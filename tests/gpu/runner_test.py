#!/usr/bin/env python3
"""What tests/gpu/run.sh lets pass: with made-up programs in place of the prebuilt ones."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.sh")
BENCH = """#!/bin/sh
case $LD_PRELOAD in *libautograph.so) t=%(shim)s ;; *) t=%(plain)s ;; esac
case "$*" in *--mode*) t=%(rival)s ;; esac
echo '{"median": '$t', "driver": "%(driver)s", "driver_version": 1, "device": "%(device)s"}'
"""
# Without and with the shim: the result; the statistics of the shim; the driver's account.
APP = """#!/bin/sh
case $LD_PRELOAD in *libautograph.so) run=with ;; *) run=without ;; esac
[ -z "$AUTOGRAPH_STATS" ] || echo '{"counters": {"launches_seen": 9}}' >"$AUTOGRAPH_STATS"
[ -z "$SIMCUDA_STATS" ] || cat "%(folder)s/account" >"$SIMCUDA_STATS"
cat "%(folder)s/$run"
echo "app: 0.5 seconds" >&2
exit "$(cat "%(folder)s/code")"
"""


class Runner(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.times(eager=10.0, shim=5.0, rival=5.0)
        for app in ("stencil", "cg", "chain", "phases"):
            self.put(f"{app}_driver", APP % {"folder": self.folder})
        self.put("libautograph.so", "no library; a program that does not look is not disturbed")
        self.put("with", "app: checksum 1\n")
        self.put("without", "app: checksum 1\n")
        self.put("code", "0")
        self.put("account", json.dumps({"kernels_eager": 10, "kernels_in_graphs": 90}))

    def put(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)

    def times(self, eager, shim, rival, driver="/x/simcuda/libcuda.so.1", device="simulated"):
        self.put("chain_bench", BENCH % {"shim": shim, "plain": eager, "rival": rival,
                                         "driver": driver, "device": device})

    def run_sections(self, *arguments):
        done = subprocess.run(
            [RUN, "--prebuilt", self.folder, "--out", os.path.join(self.folder, "out"),
             "--simcuda", self.folder, *arguments], text=True, capture_output=True, timeout=100,
            check=False)
        self.last = done.stdout.strip().splitlines()[-1]
        return done

    def rows(self):
        with open(os.path.join(self.folder, "out", "results.jsonl"), encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def test_PassesWhenEveryAppPrintsTheSameAndRanInGraphs(self):
        done = self.run_sections("apps")
        self.assertEqual("7 passed, 0 failed", self.last, done.stdout)
        self.assertEqual(0, done.returncode)
        shares = [r["share"]["share"] for r in self.rows() if r.get("what") == "app"]
        self.assertEqual([0.9] * 6, shares)

    def test_FailsWhenTheShimChangesTheOutput(self):
        self.put("with", "app: checksum 2\n")
        done = self.run_sections("apps")
        self.assertEqual("1 passed, 6 failed", self.last, done.stdout)
        self.assertEqual(1, done.returncode)

    def test_FailsWhenNothingRanInAGraph(self):
        self.put("account", json.dumps({"kernels_eager": 100, "kernels_in_graphs": 0}))
        self.run_sections("apps")
        self.assertEqual("1 passed, 6 failed", self.last)

    def test_FailsWhenAProgramFails(self):
        self.put("code", "3")
        self.run_sections("apps")
        self.assertEqual("1 passed, 6 failed", self.last)

    def test_CountsAMissingProgramAsFailedAndRunsTheOthers(self):
        os.remove(os.path.join(self.folder, "cg_driver"))
        self.run_sections("apps")
        self.assertEqual("5 passed, 2 failed", self.last)

    def test_FailsOnAnotherDriverThanWanted(self):
        self.times(10.0, 5.0, 5.0, driver="/usr/lib/libcuda.so.1", device="NVIDIA H200")
        done = self.run_sections("chain")
        self.assertEqual(1, done.returncode)
        self.assertTrue(self.last.startswith("0 passed"), self.last)

    def test_MeetsTheLimitsOfTheChainWhereTheShimIsAsFast(self):
        self.times(eager=10.0, shim=4.0, rival=5.0)
        done = self.run_sections("chain")
        self.assertTrue(self.last.endswith(" 0 failed"), done.stdout)

    def test_FailsEachLimitOfTheChainThatIsMissed(self):
        self.times(eager=10.0, shim=10.3, rival=5.0)
        done = self.run_sections("chain")
        # The driver item and the unjudged comparison pass; the six with a limit fail.
        self.assertEqual("2 passed, 6 failed", self.last, done.stdout)

    def test_CountsWhatTheTimeDoesNotAllowAsFailed(self):
        done = self.run_sections("--budget", "1", "apps")
        self.assertEqual("0 passed, 7 failed", self.last, done.stdout)

    def test_ADryRunPassesNothing(self):
        done = self.run_sections("--dry-run", "apps", "chain")
        self.assertTrue(self.last.startswith("0 passed"), self.last)
        self.assertEqual(1, done.returncode)


if __name__ == "__main__":
    unittest.main(verbosity=2)
