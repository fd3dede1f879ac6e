#!/usr/bin/env python3
"""autograph run with the shim itself, an example program, and the simulated driver."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sentences  # noqa: E402

ROOT = sentences.workspace()
PROGRAM = [os.path.join(ROOT, "tests/apps/chain_driver"), "-k", "120", "-i", "100"]
LAUNCHES = 120 * 100


class RunOnSimcuda(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.driver = os.path.join(self.folder, "driver.json")
        self.env = {"PATH": os.environ["PATH"],
                    "AUTOGRAPH_LIBRARY": os.path.join(ROOT, "libautograph.so"),
                    "LD_LIBRARY_PATH": os.path.join(ROOT, "tools/simcuda"),
                    "AUTOGRAPH_PACE": "prompt",  # what wall time says depends on what else runs
                    "SIMCUDA_STATS": self.driver}

    def run_program(self, *words):
        return subprocess.run([*words, *PROGRAM], env=self.env, text=True, capture_output=True,
                              timeout=50, check=True)

    def autograph(self, *options):
        return self.run_program(sys.executable, os.path.join(ROOT, "tools/autograph"), "run",
                                *options, "--")

    def driver_says(self):
        with open(self.driver, encoding="utf-8") as f:
            stats = json.load(f)
        return stats["kernels_eager"], stats["kernels_in_graphs"]

    def test_GivesTheProgramsResultAndReplacesLaunches(self):
        alone = self.run_program()
        self.assertEqual((LAUNCHES, 0), self.driver_says())
        under = self.autograph()
        eager, in_graphs = self.driver_says()
        self.assertEqual(alone.stdout, under.stdout)
        self.assertEqual(LAUNCHES, eager + in_graphs)
        self.assertGreater(in_graphs, LAUNCHES // 2)

    def test_TellsInTheSummaryWhatTheDriverSaw(self):
        done = self.autograph()
        _, in_graphs = self.driver_says()
        self.assertIn(f": {LAUNCHES} kernel launches, {in_graphs} of them (", done.stderr)

    def test_DumpsEachGraphAndKeepsTheStatistics(self):
        kept = os.path.join(self.folder, "kept.json")
        self.autograph("--dump", self.folder, "--stats", kept)
        with open(kept, encoding="utf-8") as f:
            built = json.load(f)["counters"]["graphs_built"]
        dots = [n for n in os.listdir(self.folder) if n.endswith(".dot")]
        self.assertGreater(built, 0)
        self.assertEqual(built, len(dots))


sentences.main()
