#!/usr/bin/env python3
"""The checks of tools/test.sh: each passes a clean tree and fails one with the fault it is for."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sentences  # noqa: E402

TOOLS = os.path.join(sentences.workspace(), "tools")
STYLE = os.path.join(sentences.workspace(), ".clang-format")
CLEAN = "int ag_one(void)\n{\n    return 1;\n}\n"


class Tree(unittest.TestCase):
    """A git tree with one clean file."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder)
        subprocess.run(["git", "init", "-q", self.folder], check=True)
        shutil.copy(STYLE, os.path.join(self.folder, ".clang-format"))
        self.put("one.c", CLEAN)

    def put(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def run_check(self, name, *options):
        return subprocess.run([os.path.join(TOOLS, name), *options, self.folder], text=True,
                              capture_output=True, timeout=60, check=False)

    def passes(self, name, *options):
        done = self.run_check(name, *options)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)

    def fails(self, why, name, *options):
        done = self.run_check(name, *options)
        self.assertEqual(1, done.returncode, done.stdout + done.stderr)
        self.assertIn(why, done.stdout + done.stderr)


class Text(Tree):
    def refuses(self, why, text, name="two.c"):
        self.put(name, text)
        self.fails(why, "check_text.sh")

    def test_PassesACleanTree(self):
        self.passes("check_text.sh")

    def test_RefusesAPathOfADevelopersMachine(self):
        self.refuses("developer's machine", 'const char *p = "/ho' 'me/someone/x";\n')

    def test_AllowsPathsThatEveryMachineHas(self):
        self.put("two.md", "see /usr/local/cuda, ~/.cache/x and src/ho" "me/index\n")
        self.passes("check_text.sh")

    def test_RefusesTheHostOfARegistry(self):
        self.refuses("package registry", "get it at https://py" "pi.org/simple\n", "two.md")

    def test_RefusesUnfinishedWork(self):
        self.refuses("unfinished", "/* TO" "DO: implement */\n")

    def test_RefusesAMergeMarker(self):
        self.refuses("merge marker", "<<<<<" "<< ours\n")

    def test_RefusesATabInC(self):
        self.refuses("tab", "int\tx;\n")

    def test_RefusesACommentOver120ColumnsInC(self):
        self.refuses("120 columns", f"/* {'x' * 120} */\n")

    def test_RefusesWhiteSpaceAtALinesEnd(self):
        self.refuses("white space", "int x; \n")


class Format(Tree):
    def test_PassesACleanTree(self):
        self.passes("check_format.sh")

    def test_RefusesCThatClangFormatWouldChange(self):
        self.put("two.c", "int  x;\n")
        self.fails("clang-format", "check_format.sh")

    def test_RefusesAShellScriptThatDoesNotParse(self):
        self.put("two.sh", "if true; then\n")
        self.fails("two.sh", "check_format.sh")

    def test_RefusesPythonThatDoesNotParse(self):
        self.put("two.py", "def f(:\n")
        self.fails("two.py", "check_format.sh")


class Sizes(Tree):
    def test_PassesACleanTree(self):
        self.passes("check_layers.py", "--sizes-only")

    def test_RefusesAFunctionOf81LinesAndAllows80(self):
        body = "void ag_two(void)\n{{\n{}}}\n"
        self.put("two.c", body.format("    ag_one();\n" * 77))
        self.passes("check_layers.py", "--sizes-only")
        self.put("two.c", body.format("    ag_one();\n" * 78))
        self.fails("ag_two has 81 lines", "check_layers.py", "--sizes-only")

    def test_RefusesAFileOf601LinesAndAllows600(self):
        self.put("two.h", "/* */\n" * 600)
        self.passes("check_layers.py", "--sizes-only")
        self.put("two.h", "/* */\n" * 601)
        self.fails("601 lines", "check_layers.py", "--sizes-only")

    def test_RefusesAFileNameThatIsUsedTwice(self):
        self.put("other/one.c", CLEAN)
        self.fails("more than once: one.c other/one.c", "check_layers.py", "--sizes-only")


class Count(Tree):
    def log(self, target, *cases):
        self.put(f"{target}/test.xml",
                 f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")

    def count(self, labels, *checks):
        return subprocess.run([os.path.join(TOOLS, "count_tests.py"), self.folder, *checks],
                              input=labels, text=True, capture_output=True, timeout=60, check=False)

    PASSED = '<testcase classname="A" name="B" status="run" result="completed"/>'
    FAILED = '<testcase classname="A" name="C"><failure/></testcase>'
    ERROR = '<testcase classname="A" name="D"><error/></testcase>'
    SKIPPED = '<testcase classname="A" name="E" result="skipped"/>'
    DISABLED = '<testcase classname="A" name="F" status="notrun"/>'

    def test_CountsCasesOfTheNamedTargetsOnly(self):
        self.log("a/one", self.PASSED, self.PASSED, self.SKIPPED, self.DISABLED)
        self.log("a/gone", self.FAILED)
        done = self.count("//a:one\n")
        self.assertEqual(("2 passed, 0 failed, 1 skipped\n", 0), (done.stdout, done.returncode))

    def test_FailsWithAFailureOrAnError(self):
        self.log("a/one", self.PASSED, self.FAILED, self.ERROR)
        done = self.count("//a:one\n")
        self.assertEqual(("1 passed, 2 failed\n", 1), (done.stdout, done.returncode))
        self.assertIn("//a:one: A.C", done.stderr)

    def test_SaysWhyACaseFailed(self):
        self.log("a/one", '<testcase classname="A" name="C"><failure message="a.cc:1&#x0A;one"/>'
                 '<failure message="a.cc:2"/></testcase>')
        self.assertEqual("failed: //a:one: A.C\n    a.cc:1\n    one\n    a.cc:2\n",
                         self.count("//a:one\n").stderr)

    def test_AddsUpShards(self):
        self.log("a/one/shard_1_of_2", self.PASSED)
        self.log("a/one/shard_2_of_2", self.PASSED)
        self.assertEqual("2 passed, 0 failed\n", self.count("//a:one\n").stdout)

    def test_FailsATargetWithoutALogOrWithoutACase(self):
        self.log("a/empty", self.DISABLED)
        done = self.count("//a:empty //a:missing\n")
        self.assertEqual(("0 passed, 2 failed\n", 1), (done.stdout, done.returncode))

    def test_CountsEachCheckAsACase(self):
        done = self.count("", "ok:text", "failed:format")
        self.assertEqual(("1 passed, 1 failed\n", 1), (done.stdout, done.returncode))

    def test_FailsWhenNothingRan(self):
        self.assertEqual(1, self.count("").returncode)


sentences.main()
