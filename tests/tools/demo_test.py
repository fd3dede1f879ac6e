#!/usr/bin/env python3
"""What tools/demo.sh lets pass: run in a tree of its own, with a program and a driver's account that
are made up, and a bazel that builds nothing."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sentences  # noqa: E402

DEMO = os.path.join(sentences.workspace(), "tools/demo.sh")
BAZEL = '#!/bin/sh\n[ "$1" = build ] || echo "%s"\n'
# The result and the account are chosen by whether the shim is preloaded.
PROGRAM = """#!/bin/sh
case $LD_PRELOAD in *libautograph.so) run=with ;; *) run=without ;; esac
[ -z "$AUTOGRAPH" ] || exit 9
[ ! -f "%(folder)s/$run.json" ] || cat "%(folder)s/$run.json" >"$SIMCUDA_STATS"
cat "%(folder)s/$run.result"
exit "$(cat "%(folder)s/$run.code")"
"""


def account(eager, in_graphs, elapsed):
    return json.dumps({"kernels_eager": eager, "kernels_in_graphs": in_graphs,
                       "elapsed_us": elapsed})


class Demo(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.put("bin/bazel", BAZEL % self.folder)
        self.put("tools/install.sh", "#!/bin/sh\n")
        self.put("tests/apps/chain_driver", PROGRAM % {"folder": self.folder})
        shutil.copy(DEMO, os.path.join(self.folder, "tools/demo.sh"))
        for run in ("with", "without"):
            self.put(f"{run}.result", "chain: checksum 1\n")
            self.put(f"{run}.code", "0")
        self.put("without.json", account(36000, 0, 120000.5))
        self.put("with.json", account(1000, 35000, 20000.25))

    def put(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)

    def demo(self, **more):
        env = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "TMPDIR": self.folder, **more}
        return subprocess.run([os.path.join(self.folder, "tools/demo.sh"), "--simulated"], env=env,
                              text=True, capture_output=True, timeout=50, check=False)

    def fails(self, why):
        done = self.demo()
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertIn(why, done.stderr)

    def test_TellsResultsCountAndTimesThatItLabelsSimulated(self):
        done = self.demo()
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(2, done.stdout.count("chain: checksum 1\n"))
        self.assertIn("35000 of 36000 kernel launches ran inside graphs", done.stdout)
        self.assertIn("simulated: 120000.5 us without, 20000.25 us with", done.stdout)

    def test_FailsWhenNothingWasReplaced(self):
        self.put("with.json", account(36000, 0, 120000.5))
        self.fails("nothing was replaced")

    def test_FailsWhenTheResultsDiffer(self):
        self.put("with.result", "chain: checksum 2\n")
        self.fails("the results differ")

    def test_FailsWhenTheProgramFailsUnderTheShim(self):
        self.put("with.code", "1")
        self.fails("the program failed (with)")

    def test_FailsWhenTheDriverGivesNoAccount(self):
        os.remove(os.path.join(self.folder, "with.json"))
        self.fails("no kernels_in_graphs")

    def test_FailsWhenTheProgramUsedGraphsWithoutTheShim(self):
        self.put("without.json", account(0, 36000, 1.0))
        self.fails("without the shim")

    def test_IsNotMisledByOptionsInTheEnvironment(self):
        self.assertEqual(0, self.demo(AUTOGRAPH="off").returncode)


sentences.main()
