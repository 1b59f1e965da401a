#!/usr/bin/env python3
"""Jobs whose workers step themselves, with any optimizer of PyTorch: as one process, and when processes die."""

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

PROGRAM = [PYTHON, os.path.join(HERE, "worker_steps.py")]
SERVER = os.path.abspath("server/sluice_server")
EVERY_KIND = ("adadelta", "nadam", "radam", "adamax", "asgd", "rprop", "lion", "maximize")


class OneProcessTest(unittest.TestCase):
    def play(self, workers, *words):
        ended = launch(workers + 1, [*PROGRAM, *words])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return ended.stdout.splitlines()

    def lines(self, workers, *words):
        """What each worker says: the same."""
        said = [line for line in self.play(workers, *words) if not line.startswith((" ", "Sluice"))]
        self.assertEqual(len(said), workers, said)
        self.assertEqual(len(set(said)), 1, said)
        return said[0].split()

    # The mean of two numbers is exact but for one rounding, as in one process.
    def test_every_optimizer_has_the_bits_of_one_process(self):
        for kind in EVERY_KIND:
            with self.subTest(kind):
                self.assertEqual(self.lines(2, "trains_as_one_process", kind, "60")[1], "0.0")

    def test_also_with_overlap_and_several_servers(self):
        self.assertEqual(self.lines(2, "trains_as_one_process", "lion", "60", "overlap")[1], "0.0")
        ended = self.play(3, "trains_as_one_process", "nadam", "60", "--sluice-servers=2")
        self.assertEqual([line.split()[1] for line in ended if line.startswith("difference")], ["0.0"] * 2)

    def test_what_the_loop_does_to_the_mean_of_the_gradients_counts(self):
        for how in ("norm", "value"):
            with self.subTest(how):
                self.assertLess(float(self.lines(2, "clips_the_mean", how)[1]), 1e-6)

    def test_a_model_of_other_types_steps_in_them(self):
        self.assertLess(float(self.lines(2, "has_other_types", "float64")[1]), 1e-6)
        self.assertLess(float(self.lines(2, "has_other_types", "bfloat16")[1]), 0.1)

    def test_the_state_of_a_snapshot_goes_on(self):
        self.assertEqual(self.lines(1, "goes_on_from_a_snapshot"), ["moments", "5", "difference", "0.0"])

    def test_a_step_that_is_left_out_is_taken_by_nobody(self):
        self.assertEqual(self.lines(2, "leaves_a_step_out", "--sluice-skip-not-finite")[:3], ["steps", "5", "model"])

    def test_a_step_that_breaks_off_is_not_taken_twice_and_ends_the_training(self):
        self.assertIn("broken", launch(2, [*PROGRAM, "breaks_off"]).stdout)

    def test_a_state_that_could_not_be_handed_over_is_told_once(self):
        self.assertIn("warned 1", self.play(1, "warns_of_a_state_that_cannot_be_handed_over"))

    def test_local_steps_take_any_optimizer(self):
        self.assertEqual(self.lines(2, "takes_local_steps")[0], "local")

    def test_what_cannot_work_is_an_error_at_once(self):
        self.assertIn("refused", self.play(1, "is_refused"))
        for flag, expected in (("--sluice-mode=async", "mode async lets them miss some"),
                               ("--sluice-lr-warmup-steps=5", "a schedule of learning rates")):
            with self.subTest(flag):
                ended = launch(2, [*PROGRAM, "joins", "worker", flag])
                self.assertRegex(ended.stdout, f"reason BAD_OPTIMIZER .*{expected}", ended.stderr)


class DeathTest(unittest.TestCase):
    """A worker, the server or all die. Nobody sleeps: the others wait for who is dead."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.address = f"unix:{self.folder}/server"

    def start(self, words):
        process = started(words)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def serve(self, *flags, lease=600):
        return self.start([SERVER, f"--listen={self.address}", "--workers=2", f"--lease={lease}", *flags])

    def work(self, name, *words):
        return self.start([*PROGRAM, "goes_to_the_end", *words, f"--sluice-server={self.address}", f"--sluice-name={name}"])

    def read_until(self, process, line):
        """Returns what it says before that line."""
        said = []
        for each in process.stdout:
            if each == line + "\n":
                return said
            said.append(each)
        self.fail("".join(said) + process.stderr.read())

    def end_of(self, process):
        """Returns the checksums with which a worker ends."""
        said = process.stdout.read()
        self.assertEqual(process.wait(120), 0, said + process.stderr.read())
        return re.search(r"^end (.*)$", said, re.MULTILINE).group(1)

    def undisturbed(self, kind, width):
        ended = launch(3, [*PROGRAM, "goes_to_the_end", kind, width])
        ends = set(re.findall(r"^end (.*)$", ended.stdout, re.MULTILINE))
        self.assertEqual(len(ends), 1, ended.stdout + ended.stderr)
        return ends.pop()

    def kept(self, number, *flags):
        return [f"--checkpoint-dir={self.folder}/kept-{number}", *flags]

    # With vectors for one call and for several, and with answers that wait for the journal.
    def test_a_worker_that_comes_in_the_place_of_a_dead_one_has_the_model_and_the_state(self):
        for number, (kind, width, keeps) in enumerate([("nadam", "8", False), ("lion", "3000", False),
                                                       ("adadelta", "8", True), ("radam", "3000", True)]):
            with self.subTest(kind, width=width, keeps=keeps):
                server = self.serve(*(self.kept(number, "--durability=journal") if keeps else []))
                lives, dies = self.work("lives", kind, width), self.work("dies", kind, width, "dies")
                dies.wait(120)
                comes = self.work("dies", kind, width)
                self.read_until(comes, "came at 20")
                expected = self.undisturbed(kind, width)
                self.assertEqual(self.end_of(comes), expected)
                self.assertEqual(self.end_of(lives), expected)
                self.assertEqual(server.wait(60), 0)

    def test_a_server_that_has_its_journal_goes_on_with_the_same_bits(self):
        flags = self.kept(0, "--durability=journal")
        server = self.serve(*flags)
        workers = [self.work(name, "nadam", "8") for name in "ab"]
        for step in (10, 25):
            self.read_until(workers[0], f"step {step}")
            server.kill()
            server.wait()
            server = self.serve(*flags)
        self.assertEqual({self.end_of(worker) for worker in workers}, {self.undisturbed("nadam", "8")})
        self.assertEqual(server.wait(60), 0)

    def test_a_server_that_has_lost_steps_goes_on_with_one_workers_model(self):
        flags = self.kept(0, "--checkpoint-every=20")
        server = self.serve(*flags)
        workers = [self.work(name, "nadam", "8") for name in "ab"]
        self.read_until(workers[0], "step 30")
        server.kill()
        server.wait()
        server = self.serve(*flags)
        self.assertEqual(len({self.end_of(worker) for worker in workers}), 1)
        self.assertEqual(server.wait(60), 0)

    def test_without_a_worker_that_has_the_model_it_is_not_made_up(self):
        flags = self.kept(0, "--durability=journal")
        server = self.serve(*flags)
        workers = [self.work(name, "nadam", "8", "dies") for name in "ab"]
        for worker in workers:
            worker.wait(120)
        server.kill()
        server.wait()
        self.serve(*flags, lease=5)  # so long somebody who has the model might come back
        for worker in [self.work(name, "nadam", "8") for name in "ab"]:
            _, error = worker.communicate(timeout=120)
            self.assertIn("none that takes part has it", error)
            self.assertEqual(worker.returncode, 1)

    def test_nobody_takes_the_servers_vector_for_a_model(self):
        self.serve(*self.kept(0, "--checkpoint-every=1"))
        workers = [self.work(name, "nadam", "8", "dies" if name == "a" else "lives") for name in "ab"]
        workers[0].wait(120)
        program = ("import sys, torch; sys.path.insert(0, sys.argv[1]); sys.argv[1:] = []; import sluice, worker_steps; "
                   "next(sluice.follow(worker_steps.model_of(), every=1, server=%r))" % self.address)
        ended = started([PYTHON, "-c", program, HERE])
        _, error = ended.communicate(timeout=60)
        self.assertIn("the server has their mean gradients only", error)


if __name__ == "__main__":
    recorded_tests.main()
