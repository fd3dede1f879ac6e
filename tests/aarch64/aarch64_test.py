#!/usr/bin/env python3
"""tests/aarch64/aarch64_test.py - the whole library on the second processor: built with a cross compiler, run under qemu.

Skipped, case by case and in the count, where aarch64-linux-gnu-gcc or qemu-aarch64 is missing (tools/install.sh has them).
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from sentences import main, workspace  # noqa: E402

GCC, QEMU, ROOT = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"
MISSING = [tool for tool in (GCC, QEMU) if not shutil.which(tool)]
HERE = "tests/aarch64/"
FLAGS = ["-O2", "-g", "-fPIC", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-D_FORTIFY_SOURCE=1",
         '-DAG_VERSION="0.1"']


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240, **options)


class Build:
    """The library, the stand-in driver and the program; once for all cases."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.said = ""
        os.chdir(workspace())
        external = os.path.join(os.environ.get("TEST_SRCDIR", "bazel-autograph/external"), "cuda/include")
        self.include = ["-I.", "-isystem", external]
        self.driver = self.path("driver/libcuda.so.1")
        self.shim = self.path("libautograph.so")
        self.program = self.path("aarch64_case")
        os.mkdir(self.path("driver"))
        self.library()
        self.gcc("-shared", "-fPIC", "-O1", "-DSTANDIN", "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic", "-I.", "-o",
                 self.driver, HERE + "standin_libcuda.c", HERE + "registers.S")
        self.gcc("-O1", "-I.", "-Wall", "-Wextra", "-Werror", "-o", self.program, HERE + "aarch64_case.c",
                 HERE + "registers.S", self.driver, "-ldl")

    def path(self, name):
        return os.path.join(self.dir, name)

    def gcc(self, *arguments):
        done = run(GCC, *arguments)
        if done.returncode:
            self.said += " ".join(arguments) + "\n" + done.stdout
        return done.returncode == 0

    def objects(self):
        early = ("shim/driver.c", "shim/elf.c", "shim/resolve.c")  # as in shim/BUILD
        sources = [f for folder in ("shim", "shim/observe", "capture", "policy") for f in glob.glob(folder + "/*.[cS]")]
        for source in sorted(sources) + ["kernels/fill_image.c"]:
            if source == "shim/observe/options_doc.c":
                continue
            out = self.path(source.replace("/", "_") + ".o")
            standard = "-std=c11" if source.startswith("shim/observe/") else "-std=gnu11"
            if self.gcc(standard, *FLAGS, *(["-fno-builtin"] if source in early else []), *self.include, "-c", source, "-o",
                        out):
                yield out

    def library(self):
        self.gcc("-E", "-P", "-x", "c", "-I.", "shim/exports.lds.in", "-o", self.path("exports.lds"))
        self.gcc("-shared", "-o", self.shim, "-Wl,--version-script=" + self.path("exports.lds"), "-Wl,-z,defs",
                 "-Wl,-z,relro,-z,now", *self.objects())

    def play(self, case, **environment):
        """Under the shim; qemu hands these variables to the program alone."""
        variables = dict(LD_PRELOAD=self.shim, LD_LIBRARY_PATH=os.path.dirname(self.driver), **environment)
        given = [word for name, value in variables.items() for word in ("-E", f"{name}={value}")]
        return run(QEMU, "-L", ROOT, *given, self.program, case)


@unittest.skipIf(MISSING, "NOT CHECKED: aarch64, for want of " + ", ".join(MISSING))
class Aarch64(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build = Build()

    def plays(self, case, **environment):
        done = self.build.play(case, **environment)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_whole_library_builds_without_a_warning(self):
        self.assertEqual(self.build.said, "")
        self.assertTrue(os.path.exists(self.build.shim))

    def test_a_launch_arrives_with_its_eleven_arguments(self):
        self.plays("launch")

    def test_a_draining_thunk_keeps_every_register(self):
        self.plays("thunk")

    def test_a_bare_jump_keeps_every_register(self):
        self.plays("bare")

    def test_a_function_that_nobody_knows_gets_a_thunk_that_keeps_every_register(self):
        self.plays("unknown")

    def test_lookups_by_both_routes_give_hooks(self):
        self.plays("lookup")

    def test_other_names_are_left_alone(self):
        self.plays("others")

    def test_counting_calls_changes_nothing(self):
        for case in ("launch", "thunk", "bare", "unknown"):
            file = self.build.path(case + ".json")
            self.plays(case, AUTOGRAPH_STATS=file)
            self.assertTrue(os.path.exists(file), "no statistics: the shim was not at work")

    def test_off_is_a_bare_jump(self):
        for case in ("launch", "thunk", "bare"):
            self.plays(case, AUTOGRAPH="off")


if __name__ == "__main__":
    main()
