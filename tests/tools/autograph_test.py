#!/usr/bin/env python3
"""The autograph command, as a person calls it. Any library stands in for the shim here: what is
tested is what the command does around the program."""
import json
import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sentences  # noqa: E402

COMMAND = os.path.join(sentences.workspace(), "tools/autograph")
LIBRARY = os.path.realpath(next(p for p in ("/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6")
                                if os.path.exists(p)))
STATS = {
    "schema": "autograph-stats/1", "pid": 4711, "off_reason": None,
    "counters": {"launches_seen": 1000, "launches_replayed": 900, "graph_launches": 9,
                 "nodes_patched": 5},
    "eager": [{"reason": "UNSEEN", "sentence": "not often enough", "count": 100}],
}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.env = {"PATH": os.environ["PATH"], "AUTOGRAPH_LIBRARY": LIBRARY}

    def path(self, name):
        return os.path.join(self.folder, name)

    def file(self, name, content, mode=0o755):
        with open(self.path(name), "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(self.path(name), mode)
        return self.path(name)

    def autograph(self, *arguments):
        return subprocess.run([sys.executable, COMMAND, *arguments], env=self.env, text=True,
                              capture_output=True, timeout=60, check=False)

    def run_sh(self, script, *options):
        return self.autograph("run", *options, "--", "/bin/sh", "-c", script)


class Run(Case):
    def test_ExitsWithTheCodeOfTheProgram(self):
        self.assertEqual(0, self.run_sh("exit 0").returncode)
        self.assertEqual(7, self.run_sh("exit 7").returncode)

    def test_ExitsWith128PlusTheSignalThatEndedTheProgram(self):
        self.assertEqual(128 + signal.SIGKILL, self.run_sh("kill -KILL $$").returncode)

    def test_ExitsWith127WhenThereIsNoSuchProgram(self):
        done = self.autograph("run", "--", self.path("nothing"))
        self.assertEqual(127, done.returncode)
        self.assertIn("no such program", done.stderr)

    def test_ExitsWith126WhenTheProgramCannotBeStarted(self):
        self.assertEqual(126, self.autograph("run", "--", self.folder).returncode)

    def test_ExitsWith125WhenThereIsNoShim(self):
        self.env["AUTOGRAPH_LIBRARY"] = self.path("nothing.so")
        done = self.run_sh("echo started")
        self.assertEqual((125, ""), (done.returncode, done.stdout))

    def test_ExitsWith125WithoutAProgram(self):
        self.assertEqual(125, self.autograph("run", "--").returncode)

    def test_PutsTheShimBeforeWhatWasPreloadedAlready(self):
        self.env["LD_PRELOAD"] = "libdl.so.2"
        self.assertEqual(f"{LIBRARY}:libdl.so.2\n", self.run_sh("echo $LD_PRELOAD").stdout)

    def test_HandsArgumentsOnUnchanged(self):
        done = self.autograph("run", "--", "/bin/sh", "-c", 'printf "<%s>" "$@"', "x", "a b", "--",
                              "--stats", "")
        self.assertEqual("<a b><--><--stats><>", done.stdout)

    def test_AsksForDumpsWhereToldTo(self):
        done = self.run_sh("echo $AUTOGRAPH_DUMP", "--dump", self.folder)
        self.assertEqual(f"{self.folder}\n", done.stdout)

    def test_LeavesNoOptionToTheShimThatItDoesNotKnow(self):
        self.assertEqual("\n", self.run_sh("echo $AUTOGRAPH_LIBRARY").stdout)

    def test_PassesATerminationOnAndWaitsForTheProgram(self):
        script = "trap 'echo ended; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
        child = subprocess.Popen([sys.executable, COMMAND, "run", "--", "/bin/sh", "-c", script],
                                 env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 text=True)
        self.assertEqual("ready\n", child.stdout.readline())
        child.send_signal(signal.SIGTERM)
        self.assertEqual("ended\n", child.stdout.readline())
        self.assertEqual(3, child.wait(60))
        child.stdout.close()


class Summary(Case):
    # The program writes what the shim would, to the file the command asked for.
    WRITE = 'cat > "$(echo "$AUTOGRAPH_STATS" | sed "s/%p/$$/")" <<END\n%s\nEND\n'

    def write(self, stats):
        return self.WRITE.replace("%s", json.dumps(stats))

    def test_TellsLaunchesAndReasonsOnStandardError(self):
        done = self.run_sh(self.write(STATS))
        self.assertEqual("", done.stdout)
        self.assertIn("process 4711: 1000 kernel launches, 900 of them (90.0%) in 9 graph launches",
                      done.stderr)
        self.assertIn("100 launched one by one: not often enough", done.stderr)

    def test_SaysSoWhenNoLaunchWasSeen(self):
        self.assertIn("no kernel launch was seen", self.run_sh("exit 0").stderr)

    def test_TellsWhyHoldingWasOff(self):
        off = dict(STATS, off_reason="the driver is too old")
        self.assertIn("holding was off: the driver is too old", self.run_sh(self.write(off)).stderr)

    def test_IsSilentWhenAskedToBe(self):
        done = self.run_sh('echo "[$AUTOGRAPH_STATS]"', "--quiet")
        self.assertEqual(("[]\n", ""), (done.stdout, done.stderr))

    def test_KeepsTheStatisticsWhereToldTo(self):
        done = self.run_sh(self.write(STATS), "--stats", self.path("kept.json"))
        self.assertIn("900 of them", done.stderr)
        with open(self.path("kept.json"), encoding="utf-8") as kept:
            self.assertEqual(STATS, json.load(kept))

    def test_DoesNotTakeAnEarlierRunsFileForThisOnes(self):
        self.file("kept.json", json.dumps(STATS))
        done = self.run_sh("exit 0", "--stats", self.path("kept.json"))
        self.assertNotIn("900 of them", done.stderr)

    def test_SurvivesStatisticsThatAreNotJson(self):
        done = self.run_sh(self.WRITE.replace("%s", "{") + "exit 5")
        self.assertEqual(5, done.returncode)
        self.assertIn("statistics unreadable", done.stderr)


def elf(interpreter=b"", bits=2, machine=62):
    """The least that the kernel would call a program: a header and one segment."""
    text = interpreter + b"\0" if interpreter else b""
    header = b"\x7fELF" + bytes([bits, 1, 1]) + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    kind = 3 if interpreter else 1
    return header + struct.pack("<IIQQQQQQ", kind, 4, 120, 0, 0, len(text), len(text), 1) + text


class Doctor(Case):
    def doctor(self, program):
        return self.autograph("doctor", program)

    def refused(self, program, why):
        done = self.doctor(program)
        self.assertEqual(1, done.returncode, done.stdout + done.stderr)
        self.assertIn(why, done.stdout)

    def test_ReachesAProgramThatNeedsTheDriver(self):
        done = self.doctor(os.path.join(sentences.workspace(), "tests/apps/chain_driver"))
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertIn("needs libcuda.so.1", done.stdout)

    def test_ReachesAProgramThatOpensTheDriverItself(self):
        with open("/bin/true", "rb") as true:
            program = self.file("opens", true.read() + b"libcuda.so.1\0")
        done = self.doctor(program)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertIn("opens the driver itself", done.stdout)

    def test_WarnsOfAShimThatIsLoadedIntoEveryProgram(self):
        for text, warned in (("/usr/lib/libjemalloc.so\n/opt/libautograph.so", True), ("/a.so:libautograph.so", True),
                             ("/opt/autograph/libother.so", False), ("", False)):
            done = self.autograph("doctor", "--preload", self.file("preload", text), sys.executable)
            self.assertEqual(warned, "into every program" in done.stderr, done.stderr)
        self.assertEqual("", self.autograph("doctor", "--preload", self.path("none"), sys.executable).stderr)

    def test_SaysWhenNothingShowsASignOfCuda(self):
        self.assertEqual(3, self.doctor("/bin/true").returncode)

    def test_ExaminesTheInterpreterOfAScript(self):
        done = self.doctor(self.file("script", "#!/usr/bin/env sh\n"))
        self.assertEqual(3, done.returncode)
        self.assertIn("its interpreter counts", done.stderr)

    def test_RefusesAStaticProgram(self):
        self.refused(self.file("static", elf()), "statically linked")

    def test_RefusesA32BitProgram(self):
        self.refused(self.file("old", elf(b"/lib/ld-linux.so.2", bits=1, machine=3)), "32-bit x86")

    def test_RefusesAnotherProcessor(self):
        self.refused(self.file("arm", elf(b"/lib/ld-linux-aarch64.so.1", machine=183)), "aarch64")

    def test_RefusesAProgramForMusl(self):
        self.refused(self.file("musl", elf(b"/lib/ld-musl-x86_64.so.1")), "musl")

    def test_RefusesASetUserIdProgram(self):
        program = self.file("suid", elf(b"/lib64/ld-linux-x86-64.so.2"))
        os.chmod(program, 0o755 | stat.S_ISUID)
        self.refused(program, "set-user-ID")

    def test_CannotExamineWhatIsNoProgram(self):
        self.assertEqual(2, self.doctor(self.file("text", "hello\n")).returncode)
        self.assertEqual(2, self.doctor(self.path("nothing")).returncode)
        self.assertEqual(2, self.doctor(LIBRARY).returncode)
        self.assertEqual(2, self.doctor(self.file("cut", elf()[:70])).returncode)


class CommandLine(Case):
    def test_RefusesAWordItDoesNotKnow(self):
        done = self.autograph("dance")
        self.assertEqual(2, done.returncode)
        self.assertIn("invalid choice", done.stderr)


sentences.main()
