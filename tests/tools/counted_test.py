#!/usr/bin/env python3
"""How the tools that are scripts say how far long work is: sluice_counted of tools/lib.sh."""

import os
import pty
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "testing")]
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402

LIBRARY = os.path.join(HERE, "..", "..", "tools", "lib.sh")
WORK = """
work() {
  echo "the table"
  echo "a warning" >&2
  sluice_count 1 2 "lenet"
  sluice_count 2 2 "resnet18"
  return 5
}
"""


class CountedTest(unittest.TestCase):
    def play(self, script, *arguments, stderr=subprocess.PIPE):
        return subprocess.run(["bash", "-c", f"set -euo pipefail; source {LIBRARY}; {WORK}{script}", "tool", *arguments],
                              stdout=subprocess.PIPE, stderr=stderr, text=True, check=False)

    def on_terminal(self, script, *arguments):
        """What a terminal shows, and what the output has."""
        ours, theirs = pty.openpty()
        ended = self.play(script, *arguments, stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # nobody has the other end any more
            pass
        os.close(ours)
        return ended, shown.decode()

    def test_output_errors_and_status_are_those_of_the_work(self):
        ended = self.play("sluice_counted measuring work")
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (5, "the table\n", "a warning\n"))

    def test_the_work_ends_at_the_first_error(self):
        ended = self.play("work() { echo before; false; echo after; }; sluice_counted measuring work; echo beyond")
        self.assertEqual((ended.returncode, ended.stdout), (1, "before\n"))

    def test_a_terminal_shows_how_much_is_done(self):
        ended, shown = self.on_terminal("sluice_counted measuring work")
        self.assertEqual((ended.returncode, ended.stdout), (5, "the table\n"))
        self.assertRegex(shown, r"tool: measuring, 1 of 2 done, \d+ s: lenet")
        self.assertRegex(shown, r"tool: measuring, 2 of 2 done, \d+ s: resnet18")
        self.assertTrue(shown.endswith("\r\033[K"), repr(shown))

    def test_a_log_gets_a_line_every_so_often(self):
        ended = self.play("slow() { sluice_count 1 3 lenet; sleep 10.5; }; sluice_counted measuring slow")
        self.assertRegex(ended.stderr, r"^tool: measuring, 1 of 3 done, 1\d s\n$")

    def test_nothing_is_said_with_quiet(self):
        ended, shown = self.on_terminal('sluice_take_quiet "$@"; echo "${ARGUMENTS[@]}"; sluice_counted measuring work',
                                        "--size=3", "--quiet", "--passes=2")
        self.assertEqual(ended.stdout, "--size=3 --passes=2\nthe table\n")
        self.assertEqual(shown.replace("\r\033[K", "").replace("\r\n", "\n"), "a warning\n")


if __name__ == "__main__":
    recorded_tests.main()
