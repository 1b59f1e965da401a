"""Runs Python's unittest so that Bazel counts each case, and a skipped one as skipped, and knows shards."""

import os
import unittest
import xml.etree.ElementTree


class _Result(unittest.TextTestResult):
    """Writes a file in JUnit's form where Bazel asks for one."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.cases = []

    def startTest(self, test):
        super().startTest(test)
        self.cases.append(test)

    def stopTestRun(self):
        super().stopTestRun()
        path = os.environ.get("XML_OUTPUT_FILE")
        if not path:
            return
        said = {test: ("failure", text) for test, text in self.failures + self.errors}
        said.update({test: ("skipped", reason) for test, reason in self.skipped})
        suite = xml.etree.ElementTree.Element("testsuite", name=os.environ.get("TEST_TARGET", "unittest"))
        for test in self.cases:
            case = xml.etree.ElementTree.SubElement(suite, "testcase", classname=type(test).__name__, name=test.id())
            if test in said:
                kind, text = said[test]
                xml.etree.ElementTree.SubElement(case, kind, message=text)
        xml.etree.ElementTree.ElementTree(suite).write(path)


class _Loader(unittest.TestLoader):
    """Takes every n-th case where Bazel shares a test among n processes."""

    def __init__(self):
        super().__init__()
        self._shards = int(os.environ.get("TEST_TOTAL_SHARDS", "1"))
        self._shard = int(os.environ.get("TEST_SHARD_INDEX", "0"))
        self._seen = 0
        if "TEST_SHARD_STATUS_FILE" in os.environ:
            with open(os.environ["TEST_SHARD_STATUS_FILE"], "w", encoding="utf-8"):
                pass  # tells Bazel that this test knows shards

    def getTestCaseNames(self, testCaseClass):
        names = super().getTestCaseNames(testCaseClass)
        first = self._seen
        self._seen += len(names)
        return [name for number, name in enumerate(names, first) if number % self._shards == self._shard]


def main():
    unittest.main(testRunner=unittest.TextTestRunner(resultclass=_Result, verbosity=2), testLoader=_Loader())
