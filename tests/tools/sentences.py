"""Runs the unittest cases of a file for Bazel: one case each in test.xml, with its failure."""
import os
import sys
import unittest
import xml.etree.ElementTree as ET


class Recorder(unittest.TextTestResult):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.suite = ET.Element("testsuite")

    def startTest(self, test):
        super().startTest(test)
        _, group, name = test.id().rsplit(".", 2)
        self.case = ET.SubElement(self.suite, "testcase", classname=group, name=name)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        ET.SubElement(self.case, "failure").text = self.failures[-1][1]

    def addError(self, test, err):
        super().addError(test, err)
        ET.SubElement(self.case, "error").text = self.errors[-1][1]

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        ET.SubElement(self.case, "skipped").text = reason


def workspace():
    """Where the files that a test names in data are."""
    if "TEST_SRCDIR" in os.environ:
        return os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = unittest.TextTestRunner(resultclass=Recorder, verbosity=2).run(suite)
    log = os.environ.get("XML_OUTPUT_FILE")
    if log:
        ET.ElementTree(result.suite).write(log, encoding="unicode")
    sys.exit(not result.wasSuccessful() or result.testsRun == 0)
