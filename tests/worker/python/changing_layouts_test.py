#!/usr/bin/env python3
"""Jobs in which what is trained changes, or a state is loaded late: as one process, and when a worker dies."""

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

PROGRAM = [PYTHON, os.path.join(HERE, "changing_layouts.py")]
SERVER = os.path.abspath("server/sluice_server")
LOG = "on the workers step, each with"


class ChangingLayoutsTest(unittest.TestCase):
    def play(self, workers, *words):
        ended = launch(workers + 1, [*PROGRAM, *words])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return ended

    def ends_as_one_process(self, *words, workers=2):
        """All workers say the same, and that no parameter is far from that of one process."""
        ended = self.play(workers, *words)
        said = [line for line in ended.stdout.splitlines() if line.startswith("difference")]
        self.assertEqual((len(said), len(set(said))), (workers, 1), ended.stdout + ended.stderr)
        for number in re.findall(r"\d\S*", said[0].split(" model")[0]):
            self.assertLess(float(number), 1e-6, said)
        return ended

    def test_stages_end_as_in_one_process(self):
        for kind, stages, schedule in (("sgd", "head-first", "step"), ("adamw", "head-first", "step"), ("adamw", "thaws", "one-cycle")):
            for where in ("auto", "worker"):
                with self.subTest(kind, stages=stages, where=where):
                    ended = self.ends_as_one_process("trains_in_stages", kind, stages, schedule, where)
                    self.assertEqual(ended.stderr.count(LOG), 1 if where == "auto" else 0, ended.stderr)

    def test_also_with_overlap_clipping_and_other_types(self):
        self.ends_as_one_process("trains_in_stages", "adamw", "head-first", "step", "auto", "overlap", "clip")
        self.ends_as_one_process("trains_in_stages", "radam", "head-first", "step", "auto", "overlap")
        self.ends_as_one_process("trains_in_stages", "sgd", "head-first", "step", "auto", "float64")

    def test_a_snapshot_may_be_loaded_after_the_optimizer_was_made(self):
        for kind, order, *more in (("sgd", "model-first"), ("adamw", "optimizer-first"), ("adamw", "model-first", "later")):
            with self.subTest(kind, order=order):
                ended = self.ends_as_one_process("goes_on_from_a_snapshot", kind, order, *more)
                self.assertEqual(ended.stderr.count(f"{LOG}"), 1, ended.stderr)

    def test_one_of_two_models_changes_and_the_other_does_not_notice(self):
        self.ends_as_one_process("trains_two_of_which_one_changes")

    def test_a_part_may_be_replaced(self):
        self.ends_as_one_process("replaces_its_head", workers=1)

    def test_what_cannot_change_is_an_error_that_says_what_to_do(self):
        self.assertIn("refused", self.ends_as_one_process("is_refused", workers=1).stdout)
        for flags, expected in (("--sluice-mode=async", "mode async lets them miss some"), ("--sluice-servers=2", "this job has one model")):
            with self.subTest(flags):
                said = self.play(2, "cannot_change", flags).stdout
                self.assertRegex(said, f"told .*{expected}.*needs sync, one server, and the same changes in all workers")

    def models(self, ended):
        """What each rank says, by its rank: how many rows it took, and what it ends with."""
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return dict(re.findall(r"^rank (\d) (.*)$", ended.stdout, re.MULTILINE))

    # The first layout has 6 batches of 5 rows for each worker, and each epoch is a stage.
    def test_a_worker_that_dies_in_a_later_layout_comes_back_to_it(self):
        for where in ("auto", "worker"):
            whole = self.models(launch(3, [*PROGRAM, "deals_batches", where, "never"]))
            self.assertRegex(whole["0"], "^rows 120 step 24 model")
            self.assertEqual(whole["0"], whole["1"])
            for dies, rows in (("1.35", 90), ("1.45", 80), ("2.65", 60), ("3.120", 5)):
                with self.subTest(where, dies=dies):
                    again = self.models(launch(3, [*PROGRAM, "deals_batches", where, dies, "--sluice-max-restarts=1"]))
                    self.assertEqual(again["1"], again["0"].replace("rows 120", f"rows {rows}"))
                    # In the first step of a layout, the statistics that it has then are those of the other's batch.
                    compared = 1 if dies in ("1.35", "2.65") else 2
                    self.assertEqual(again["0"].split(" statistics")[:compared], whole["0"].split(" statistics")[:compared])


    def test_one_that_comes_back_without_the_changes_is_told(self):
        ended = launch(3, [*PROGRAM, "deals_batches", "auto", "1.45", "sgd", "--sluice-max-restarts=1"])
        self.assertIn("told the workers of this job have changed what they train (layout-2.at-6)", ended.stdout, ended.stderr)
        self.assertNotEqual(ended.returncode, 0)


class DifferenceTest(unittest.TestCase):
    """Workers that do not make the same changes: each hears why, and none trains alone."""

    def begin(self, *changes):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        address = f"unix:{folder.name}/server"
        self.start([SERVER, f"--listen={address}", "--workers=2"])
        return [self.start([*PROGRAM, "changes", *words, f"--sluice-server={address}", f"--sluice-name={name}"])
                for name, words in zip("ab", changes)]

    def start(self, words):
        process = started(words)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def read_until(self, lines, text):
        said = []
        for line in lines:
            said.append(line)
            if text in line:
                return said
        self.fail("".join(said))

    def test_a_worker_that_changes_alone_waits_and_says_so(self):
        waits, stays = self.begin(["3"], ["nothing"])
        self.read_until(waits.stderr, "waits until the others, too, train the layout layout-2.at-1: let all workers add")
        self.read_until(stays.stdout, "changes nothing")
        stays.kill()
        self.assertNotIn("went on", stays.stdout.read())

    def test_workers_that_add_other_shapes_are_told(self):
        first, second = self.begin(["3"], ["4", "waits"])
        self.read_until(first.stderr, "waits until the others, too")
        second.stdin.write("\n")
        second.stdin.flush()
        told, = [line for line in self.read_until(second.stdout, "told") if line.startswith("told")]
        self.assertRegex(told, r"\(parameters were added\), and the job cannot go on with them: this worker's model differs")


if __name__ == "__main__":
    recorded_tests.main()
