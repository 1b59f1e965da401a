#!/usr/bin/env python3
"""Jobs of several models, each with a name: at the same time, and one after the other."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "testing")]
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402
from python_test import PYTHON, launch, started  # noqa: E402

PROGRAM = [PYTHON, os.path.join(HERE, "named_models.py")]
SERVER = os.path.abspath("server/sluice_server")
HAS_SKORCH = subprocess.run([PYTHON, "-c", "import skorch"], check=False, capture_output=True).returncode == 0


class NamedModelsTest(unittest.TestCase):
    def play(self, workers, *words):
        ended = launch(workers + 1, [*PROGRAM, *words])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return ended.stdout

    def assert_no_differences(self, said, lines):
        """As many lines have said how far a model is from that of one process, and none is."""
        found = re.findall(r"difference (.*)$", said, re.MULTILINE)
        self.assertEqual(len(found), lines, said)
        for number in " ".join(found).split():
            self.assertLess(float(number), 1e-6, said)

    def test_two_models_end_as_each_does_alone(self):
        for flags in ([], ["--sluice-push-encoding=none", "--sluice-connections=2"]):
            with self.subTest(flags=flags):
                self.assert_no_differences(self.play(2, "trains_two_models_that_know_nothing_of_each_other", *flags), 2)

    def test_a_gan_ends_as_in_one_process(self):
        self.assert_no_differences(self.play(2, "trains_a_gan"), 2)
        self.assert_no_differences(self.play(2, "trains_a_gan", "overlap"), 2)

    def test_each_fold_begins_anew(self):
        said = self.play(2, "trains_folds")
        self.assert_no_differences(said, 6)
        lines = re.findall(r"^model (\S+): 30 steps, 60 pushes, parameters' CRC-32 [0-9a-f]{8}$", said, re.MULTILINE)
        self.assertEqual(len(lines), 3, said)
        self.assertNotIn("pushes received", said)  # of the model without a name, which nobody has trained

    def test_the_server_waits_for_the_last_fold_and_ends(self):
        with tempfile.TemporaryDirectory() as folder:
            address = f"unix:{folder}/server"
            server = started([SERVER, f"--listen={address}", "--workers=1"])
            self.addCleanup(server.communicate)
            self.addCleanup(server.kill)
            worker = started([*PROGRAM, "trains_folds", f"--sluice-server={address}"])
            said, error = worker.communicate(timeout=120)
            self.assertEqual(worker.returncode, 0, said + error)
            self.assert_no_differences(said, 3)
            self.assertEqual(server.wait(60), 0)

    def test_runs_count_and_their_models_can_be_followed(self):
        self.assertIn("run-1 run-2", self.play(1, "names_its_runs"))

    def test_after_an_exception_the_next_run_trains(self):
        self.assert_no_differences(self.play(1, "drops_what_an_exception_ends"), 1)

    @unittest.skipUnless(HAS_SKORCH, "skorch is not there; run tools/setup frameworks")
    def test_skorch_scores_by_cross_validation_and_grid_search(self):
        ended = launch(3, [PYTHON, os.path.abspath("worker/python/examples/cross_validation.py")])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        said = re.findall(r"^worker \d: scores \[(.*), (.*), (.*)\], best rate (.*)$", ended.stdout, re.MULTILINE)
        self.assertEqual(len(said), 2, ended.stdout)
        self.assertEqual(said[0], said[1])
        self.assertGreater(min(float(score) for score in said[0][:3]), 0.8)
        self.assertEqual(said[0][3], "0.01")

    def test_a_name_twice_is_an_error_that_says_so(self):
        self.assertIn("refused", self.play(1, "is_refused"))

    def test_a_job_that_cannot_have_several_models_says_so_and_trains_one(self):
        said = self.play(2, "cannot_be", "--sluice-servers=2")
        self.assertIn("reason BAD_ARGUMENT", said)


if __name__ == "__main__":
    recorded_tests.main()
