#!/usr/bin/env python3
"""autograph ring: the last decisions, out of a process that stands still and out of what would be its core."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sentences  # noqa: E402

ROOT = sentences.workspace()
PROGRAM = [os.path.join(ROOT, "tests/apps/chain_driver"), "-k", "24", "-i", "100000000"]


class Ring(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self, library):
        env = {"PATH": os.environ["PATH"], "LD_PRELOAD": library, "AUTOGRAPH_PACE": "prompt",
               "LD_LIBRARY_PATH": os.path.join(ROOT, "tools/simcuda")}
        program = subprocess.Popen(PROGRAM, env=env, stdout=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def ring(self, name):
        return subprocess.run([sys.executable, os.path.join(ROOT, "tools/autograph"), "ring", str(name)],
                              text=True, capture_output=True, timeout=50, check=False)

    def stopped_with_replays(self):
        program = self.start(os.path.join(ROOT, "libautograph.so"))
        for _ in range(200):
            time.sleep(0.05)
            program.send_signal(signal.SIGSTOP)
            done = self.ring(program.pid)
            if "not permitted" in done.stderr or "Permission denied" in done.stderr:
                self.skipTest("this machine lets no process read another's memory")
            if "replayed graph" in done.stdout:
                return program, done
            program.send_signal(signal.SIGCONT)
        self.fail(f"nothing was replayed: {done.stdout[-400:]} {done.stderr}")
        return None

    def test_PrintsTheLastDecisionsOfAProcessThatStandsStill(self):
        _, done = self.stopped_with_replays()
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        head, *lines = done.stdout.splitlines()
        count = int(re.fullmatch(r"context 0x[0-9a-f]+: (\d+) decisions, the last of them:", head)[1])
        self.assertEqual(list(range(count - len(lines) + 1, count + 1)),
                         [int(line.split()[0]) for line in lines])
        self.assertEqual(min(count, 256), len(lines))

    def test_FindsThemInACoreAsWell(self):
        program, done = self.stopped_with_replays()
        core = os.path.join(self.folder, "core")
        with open(f"/proc/{program.pid}/maps", encoding="utf-8") as maps, \
                open(f"/proc/{program.pid}/mem", "rb", buffering=0) as memory, open(core, "wb") as out:
            for line in maps:
                if line.split()[1].startswith("rw"):
                    low, high = (int(n, 16) for n in line.split()[0].split("-"))
                    memory.seek(low)
                    out.write(memory.read(high - low))
        self.assertEqual(done.stdout, self.ring(core).stdout)

    def test_SaysSoWhereThereAreNone(self):
        program = self.start("")
        time.sleep(0.2)
        done = self.ring(program.pid)
        if done.returncode == 2:
            self.skipTest(done.stderr)
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn("no decisions in", done.stderr)

    def test_SaysWhyItCannotRead(self):
        done = self.ring(os.path.join(self.folder, "missing"))
        self.assertEqual(2, done.returncode)
        self.assertRegex(done.stderr, r"^autograph: ring: cannot read .*: No such file or directory\n$")
        empty = os.path.join(self.folder, "empty")
        with open(empty, "wb"):
            pass
        self.assertEqual(2, self.ring(empty).returncode)


sentences.main()
