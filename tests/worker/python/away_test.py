#!/usr/bin/env python3
"""Workers that are away: the others go on, and they come back to the job's model."""

import os
import re
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "testing")]
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402
from python_test import PYTHON, launch  # noqa: E402

PROGRAM = [PYTHON, os.path.join(HERE, "away.py")]


class AwayTest(unittest.TestCase):
    def play(self, workers, *words):
        ended = launch(workers + 1, [*PROGRAM, *words])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return ended.stdout

    def test_the_others_make_steps_meanwhile_and_all_end_with_one_model(self):
        for kind, where, *options in (("sgd", "server"), ("adamw", "auto", "overlap"), ("adamw", "worker"), ("sgd", "worker", "overlap")):
            with self.subTest(kind, where=where):
                folder = tempfile.TemporaryDirectory()
                self.addCleanup(folder.cleanup)
                said = self.play(2, "evaluates", kind, where, *options, os.path.join(folder.name, "signal"))
                ends = dict(re.findall(r"^rank (\d) (.*)$", said, re.MULTILINE))
                self.assertEqual(ends["0"], ends["1"])
                if where != "worker":  # 10 steps of both, 20 of one, 10 of both
                    self.assertRegex(ends["0"], "^step 40 model")
                    self.assertRegex(said, r"(?m)^ +pushes received +60$")

    def test_the_job_lasts_while_all_are_away(self):
        for where in ("server", "worker"):
            with self.subTest(where):
                said = self.play(2, "are_all_away", where)
                ends = re.findall(r"^rank \d (step 20 .*)$", said, re.MULTILINE)
                self.assertEqual((len(ends), len(set(ends))), (2, 1), said)
                for number in re.findall(r"^difference (.*)$", said, re.MULTILINE):
                    self.assertLess(float(number), 1e-6, said)

    def test_nobody_takes_the_batches_of_one_that_is_away(self):
        said = self.play(2, "takes_its_own_batches")
        self.assertIn("rank 0 rows 40 steps 1 8\n", said)
        self.assertIn("rank 1 rows 40 steps 5 12\n", said)

    def test_in_async_it_does_no_harm(self):
        self.assertEqual(self.play(2, "is_harmless_in_async", "--sluice-mode=async").count("harmless"), 2)

    def test_after_an_error_it_takes_part_again(self):
        self.assertIn("handled", self.play(1, "handles_errors"))

    def test_what_it_had_begun_before_is_told_or_dropped(self):
        for scenario, said in (("is_interrupted", "interrupted in the second block"), ("drops_what_it_has_computed_before", "dropped"),
                               ("is_not_away_with_a_mean", "refused")):
            with self.subTest(scenario):
                self.assertIn(said, self.play(1, scenario))

    def test_a_process_that_ends_by_an_exception_is_lost(self):
        ended = launch(2, [*PROGRAM, "ends_badly"])
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("KeyError: 'broken'", ended.stderr)
        self.assertRegex(ended.stderr, "a worker was lost: .*KeyError")

    def test_with_several_servers_it_is_an_error(self):
        self.assertRegex(self.play(2, "cannot_be_away", "--sluice-servers=2"), "told .*several")


if __name__ == "__main__":
    recorded_tests.main()
