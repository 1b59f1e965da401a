#!/usr/bin/env python3
"""What tools/test says of a run of Bazel: tools/count_tests.py."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "testing")]
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402

PROGRAM = os.path.join(HERE, "..", "..", "tools", "count_tests.py")
TARGET = "//tests/a:a_test"
PASSES = '<testcase classname="A" name="Passes"/>'
FAILS = '<testcase classname="A" name="Fails"><failure message="1 is not 2"/></testcase>'
SKIPPED = '<testcase classname="A" name="IsSkipped"><skipped/></testcase>'
BAZEL_OK, BAZEL_TESTS_FAILED, BAZEL_BROKE_OFF = 0, 3, 8


class CountTestsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def written(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def attempt(self, number, status, *cases):
        xml = self.written(f"{number}.xml", f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
        log = self.written(f"{number}.log", f"exec\n---\n---\nwhat attempt {number} said\n")
        return {"id": {"testResult": {"label": TARGET, "attempt": number, "run": 1, "shard": 1}},
                "testResult": {"status": status, "testActionOutput": [
                    {"name": "test.xml", "uri": f"file://{xml}"}, {"name": "test.log", "uri": f"file://{log}"}]}}

    def count(self, status, *events):
        path = self.written("events", "".join(json.dumps(event) + "\n" for event in events))
        ended = subprocess.run([sys.executable, PROGRAM, path, str(status)], capture_output=True, text=True, check=False)
        self.assertEqual(ended.stderr, "")
        return ended.returncode, ended.stdout.splitlines()

    def test_cases_are_counted_in_the_last_line(self):
        code, lines = self.count(BAZEL_OK, self.attempt(1, "PASSED", PASSES, SKIPPED))
        self.assertEqual((code, lines), (0, ["1 passed, 0 failed, 1 skipped"]))

    def test_why_cases_were_skipped_is_told_once_for_each_reason(self):
        no_npm = '<testcase classname="A" name="B"><skipped message="npm: none&#10;more"/></testcase>'
        code, lines = self.count(BAZEL_OK, self.attempt(1, "PASSED", PASSES, no_npm, SKIPPED, no_npm))
        self.assertEqual((code, lines), (0, ["SKIPPED 2 cases: npm: none", "1 passed, 0 failed, 3 skipped"]))

    def test_a_failure_is_shown_with_its_log_and_ends_with_1(self):
        code, lines = self.count(BAZEL_TESTS_FAILED, self.attempt(1, "FAILED", PASSES, FAILS))
        self.assertEqual((code, lines[:2], lines[-1]),
                         (1, [f"FAILED A.Fails ({TARGET})", "    1 is not 2"], "1 passed, 1 failed"))

    def test_a_target_that_fails_twice_has_failed_once(self):
        code, lines = self.count(BAZEL_TESTS_FAILED, self.attempt(1, "FAILED", FAILS), self.attempt(2, "FAILED", FAILS))
        self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed"))

    def test_a_target_that_passes_the_second_time_is_told_as_flaky_with_what_it_said_first(self):
        code, lines = self.count(BAZEL_OK, self.attempt(1, "FAILED", PASSES, FAILS), self.attempt(2, "PASSED", PASSES, PASSES))
        self.assertEqual((code, lines[0], lines[-1]), (0, f"FLAKY {TARGET}", "2 passed, 0 failed, 1 flaky"))
        self.assertIn("    what attempt 1 said", lines)

    def test_a_run_that_broke_off_is_a_failure(self):
        code, lines = self.count(BAZEL_BROKE_OFF, self.attempt(1, "PASSED", PASSES))
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed"))


if __name__ == "__main__":
    recorded_tests.main()
