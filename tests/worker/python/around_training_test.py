#!/usr/bin/env python3
"""What surrounds training: the state of the server's optimizer, and exchanges between the workers of a launch."""

import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "testing")]
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402
from python_test import PYTHON, launch, started  # noqa: E402

PROGRAM = [PYTHON, os.path.join(HERE, "around_training.py")]
SERVER = os.path.abspath("server/sluice_server")


class AroundTrainingTest(unittest.TestCase):
    def play(self, workers, *words):
        """Of so many ranks, and one that serves."""
        ended = launch(workers + 1, [*PROGRAM, *words])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return ended.stdout

    def goes_on(self, name, entries):
        with tempfile.TemporaryDirectory() as folder:
            snapshot = os.path.join(folder, "snapshot.pt")
            said = self.play(2, "brings_the_state", name, snapshot)
            self.assertEqual(said.count(f"equal {entries}\n"), 2, said)
            said = self.play(2, "goes_on_from_the_state", name, snapshot)
            differences = [float(line.split()[1]) for line in said.splitlines() if line.startswith("difference")]
            self.assertEqual(len(differences), 2, said)
            self.assertLess(max(differences), 2e-6, said)

    def test_the_state_of_sgd_is_that_of_pytorch(self):
        self.goes_on("sgd", 5)
        self.goes_on("momentum", 5)

    def test_the_state_of_adam_is_that_of_pytorch(self):
        self.goes_on("adam", 5)
        self.goes_on("adamw", 5)

    def test_the_state_of_adagrad_and_rmsprop_is_that_of_pytorch(self):
        self.goes_on("adagrad", 6)  # PyTorch's has a state of the frozen parameter
        self.goes_on("rmsprop", 5)

    def test_a_state_that_cannot_be_brought_is_told(self):
        self.assertRegex(self.play(1, "has_no_state"), "told state_dict.. has only the optimizer's options: .* after this worker has left")

    def test_the_state_of_several_servers_has_the_bits_of_one(self):
        for name in ("adam", "adagrad"):
            with self.subTest(name):
                one = [line for line in self.play(2, "says_its_state", name).splitlines() if line.startswith("state")]
                three = [line for line in self.play(4, "says_its_state", name, "--sluice-servers=3").splitlines() if line.startswith("state")]
                self.assertEqual(len(one), 2)
                self.assertEqual(three, one)

    def test_values_that_the_program_writes_are_told_once_if_the_server_steps(self):
        self.assertIn("told the program has written into weight\n", self.play(1, "writes_values"))
        self.assertIn("told\n", self.play(1, "writes_values", "worker"))

    def test_the_flags_are_listed_by_one_process(self):
        alone = started([*PROGRAM, "trains", "--sluice-help"])
        said, error = alone.communicate(timeout=60)
        self.assertEqual(alone.returncode, 0, error)
        self.assertRegex(said, r"(?m)^ +--sluice-mode ")
        self.assertNotRegex(said, r"(?m)^ +--mode ")
        own = started([*PROGRAM, "trains", "--help"])  # no parser of the program has seen it yet
        printed, complaint = own.communicate(timeout=200)
        self.assertEqual((own.returncode, printed), (2, ""))
        self.assertEqual(complaint, f"{PROGRAM[-1]}: no server: give --sluice-server=host:port, or launch with mpirun, where rank 0 is "
                         "the server\n")
        launched = launch(3, [*PROGRAM, "trains", "--sluice-help"])
        self.assertEqual((launched.returncode, launched.stdout.count("--sluice-mode ")), (0, said.count("--sluice-mode ")),
                         launched.stderr)

    def test_tensors_of_all_workers_are_reduced(self):
        self.assertEqual(self.play(3, "reduces").count("reduced"), 3)
        self.assertEqual(self.play(1, "reduces").count("reduced"), 1)

    def test_a_value_of_one_worker_is_everybodys(self):
        self.assertEqual(self.play(2, "broadcasts").count("handed on"), 2)

    def test_a_barrier_waits_for_all(self):
        self.assertIn("waited 0 True", self.play(2, "meets"))

    def test_who_is_missing_is_named(self):
        self.assertIn("named", self.play(2, "misses_one"))

    def test_a_worker_without_a_rank_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            address = f"unix:{folder}/server"
            server = started([SERVER, f"--listen={address}", "--workers=1"])
            self.addCleanup(server.communicate)
            self.addCleanup(server.kill)
            worker = started([*PROGRAM, "is_alone", f"--sluice-server={address}"])
            said, error = worker.communicate(timeout=60)
            self.assertIn("alone", said, error)

    def test_ctrl_c_ends_an_exchange_at_once(self):
        self.assertIn("interrupted True", self.play(1, "is_interrupted"))

    def test_a_run_keeps_no_optimizer_alive(self):
        self.assertIn("dropped", self.play(1, "drops_its_optimizers"))

    def test_options_that_differ_are_a_warning_or_by_a_flag_an_error(self):
        self.assertEqual(self.play(2, "has_options_of_its_own").count("went on"), 2)
        said = self.play(2, "has_options_of_its_own", "--sluice-options-must-agree")
        self.assertRegex(said, r'refused OPTIMIZER_MISMATCH "?worker-[01]"? must have the options of the other workers '
                               r"\(--options-must-agree\), and does not: learning_rate is 0\.2?5, and 0\.2?5 with .*worker-[01]")
        self.assertEqual(said.count("went on"), 1)

    def test_exchanges_go_on_beside_several_models(self):
        self.assertEqual(self.play(2, "has_several_models").count("done"), 2)


if __name__ == "__main__":
    recorded_tests.main()
