#!/usr/bin/env python3
"""The server steps with an optimizer of the program: sluice.start(server_optimizer=…)."""

import os
import re
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "testing")]
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402
from python_test import PYTHON, launch, started  # noqa: E402

PROGRAM = [PYTHON, os.path.join(HERE, "server_optimizer.py")]


class ServerOptimizerTest(unittest.TestCase):
    def play(self, workers, *words, code=0, **environment):
        ended = launch(workers + 1, [*PROGRAM, *words], **environment)
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        return ended.stdout

    def test_with_one_worker_in_async_it_equals_one_process_to_the_bit(self):
        for kind in ("lion", "factored", "muon", "radam", "nadam", "adadelta", "rprop", "odd"):
            with self.subTest(kind):
                said = self.play(1, "equals_one_process", kind, "--sluice-mode=async")
                self.assertIn("difference 0.0 state equal", said)

    def test_a_server_that_is_killed_goes_on_with_the_same_bits(self):
        whole = self.play(1, "equals_one_process", "dying", "--sluice-mode=async")
        with tempfile.TemporaryDirectory() as folder:
            killed = self.play(1, "equals_one_process", "dying", "--sluice-mode=async", f"--sluice-checkpoint-dir={folder}/kept",
                               "--sluice-durability=journal", "--sluice-checkpoint-every=25", "--sluice-max-restarts=1",
                               DIES_ONCE=os.path.join(folder, "died"))
            self.assertTrue(os.path.exists(os.path.join(folder, "died")))
        said = [re.search("^difference.*$", one, re.MULTILINE)[0] for one in (whole, killed)]
        self.assertEqual(said[0], said[1])

    def test_a_server_by_hand_takes_the_function_of_a_file(self):
        server = started([PYTHON, "-m", "sluice.server", f"{PROGRAM[1]}:make_lion", "--listen=127.0.0.1:0", "--workers=1", "--mode=async"])
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        address = next(re.search(r"listening on ([^\s,]+)", line)[1] for line in server.stderr if "listening on" in line)
        worker = started([*PROGRAM, "equals_one_process", "lion"], SLUICE_SERVER=address)
        said, complaints = worker.communicate(timeout=200)
        self.assertEqual(worker.returncode, 0, complaints)
        self.assertIn("difference 0.0 state equal", said)
        table, log = server.communicate(timeout=200)
        self.assertEqual(server.returncode, 0, log)
        self.assertRegex(table, r"(?m)^  steps +200$")

    def test_a_server_by_hand_says_what_it_does_not_find(self):
        for words, text in (([], "python3 -m sluice.server FILE.py:FUNCTION"),
                            ([f"{PROGRAM[1]}:nothing"], "has no function 'nothing'"),
                            (["missing.py:make"], "expected FILE.py:FUNCTION with a file that exists"),
                            ([f"{PROGRAM[1]}:make_lion", "--lissten=x"], "did you mean --listen")):
            with self.subTest(text):
                server = started([PYTHON, "-m", "sluice.server", *words])
                said = server.communicate(timeout=200)
                self.assertEqual(server.returncode, 2, said)
                self.assertIn(text, said[1])

    def test_several_workers_train_with_it_in_every_mode(self):
        for mode, steps in (("sync", 20), ("backup", 20), ("bounded", 60), ("ssp", 60), ("async", 60)):
            with self.subTest(mode):
                said = self.play(3, "trains_together", "radam", f"--sluice-mode={mode}", *(["--sluice-quorum=3"] if mode == "backup" else []))
                self.assertEqual(said.count("trained"), 3)
                self.assertGreaterEqual(int(re.search(r"^  steps +(\d+)$", said, re.MULTILINE)[1]), 20 if steps == 20 else 1)

    def test_what_cannot_work_is_told(self):
        none_has_joined = 3
        for server, kind, flags, code, text in (
                ("muon", "lion", (), none_has_joined, "server_optimizer has made Muon, and the workers' optimizer has another class"),
                ("none", "lion", (), none_has_joined, "the program of this server has none"),
                ("lion", "lion", ("--sluice-servers=2",), none_has_joined, "the program of this server has none"),
                ("counting", "counting", (), none_has_joined, "Counting counts in attributes of its own"),
                ("apart", "apart", (), none_has_joined, "Apart has a state that belongs to no parameter"),
                ("failing", "failing", ("--sluice-skip-not-finite",), 0, "has not made step 4: ZeroDivisionError: the fourth step: \\ud800 ää")):
            with self.subTest(text):
                said = self.play(2 if "--sluice-servers=2" in flags else 1, "is_refused", kind, "--sluice-mode=async", *flags, code=code, SERVER_OPTIMIZER=server)
                self.assertRegex(said, f"(?m)^refused: .*{re.escape(text)}")

    def test_a_state_that_was_loaded_is_not_dropped(self):
        self.assertIn("refused", self.play(1, "is_loaded", "lion", "--sluice-mode=async"))

    def test_another_option_than_lr_cannot_change(self):
        self.assertIn("refused", self.play(1, "changes_another_option", "lion", "--sluice-mode=async"))


if __name__ == "__main__":
    recorded_tests.main()
