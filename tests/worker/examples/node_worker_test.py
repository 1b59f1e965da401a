#!/usr/bin/env python3
"""The worker in Node against a real server, alone and beside the worker in numpy."""

import collections
import os
import shutil
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "testing")]
# pylint: disable=wrong-import-position
import example_job  # noqa: E402
import recorded_tests  # noqa: E402
from example_job import NODE_PACKAGES, NODE_WORKER, accuracy, trained  # noqa: E402
from lossy_link import LossyLink  # noqa: E402

# A gradient that makes the parameters and the loss grow tenfold with each step.
DIVERGES = "worker.gradient_of = lambda parameters, images, labels: (-160 * (parameters + 1), abs(parameters[0]))"


class NodeWorkerTest(example_job.JobTest):
    def setUp(self):
        super().setUp()
        if not shutil.which("node") or not os.path.isdir(NODE_PACKAGES):
            self.skipTest("Node or its packages are missing: `tools/setup examples` installs them")

    def expect_close(self, expected):
        """Node adds in another order than numpy, and in 64 bits, so each step rounds in another way."""
        difference = abs(self.parameters() - expected).max()
        self.assertLess(difference, 1e-5)

    def test_two_workers_train(self):
        self.serve("--workers=2")
        for _ in range(2):
            self.work("--max-steps=100", program=NODE_WORKER)
        rows, lines = self.end()
        self.expect_pushes(rows, steps=100, accepted=200)
        told = collections.Counter(line.split()[-1] for line in lines)
        self.assertEqual(told, {"ACCEPTED": 100, "APPLIED": 100})
        expected = trained(range(100), workers=2)
        self.expect_close(expected)
        self.assertGreater(float(rows["test accuracy"]), 0.75)
        self.assertAlmostEqual(float(rows["test accuracy"]), accuracy(expected), delta=0.001)

    def test_trains_in_one_job_with_numpy(self):
        self.serve("--workers=2")
        self.work("--max-steps=100")
        self.work("--max-steps=100", program=NODE_WORKER)
        rows, _ = self.end()
        self.expect_pushes(rows, steps=100, accepted=200)
        self.expect_close(trained(range(100), workers=2))

    def test_a_push_whose_answer_was_lost_is_repeated_and_counts_once(self):
        self.serve("--workers=1")
        # The offer of parameters, the first push, and a half of the second.
        link = LossyLink(self, self.address, silent_after=int(2.5 * 4 * 784 * 10))
        self.work("--max-steps=5", program=NODE_WORKER, server=link.address)
        self.await_state(lambda state: state.step == 2)
        link.cut()
        rows, lines = self.end()
        self.expect_pushes(rows, steps=5, accepted=5, duplicate=1)
        self.assertEqual([line.split()[-1] for line in lines], ["APPLIED"] * 5)
        self.expect_close(trained(range(5), workers=1))

    def test_ends_with_the_code_of_a_job_that_diverged(self):
        self.serve("--workers=2", "--on-divergence=stop")
        workers = [self.work("--max-steps=1000", changes=DIVERGES),
                   self.work("--max-steps=1000", program=NODE_WORKER)]
        for ended in [*(worker.end() for worker in workers), self.server.end()]:
            self.assertEqual(ended[0], 7, ended[1])

    def test_says_in_one_sentence_why_it_fails(self):
        self.serve("--workers=1")
        for flags, expected in ((["--learning-rate=-1"], 2), (["--max-step=1"], 2), (["--data-dir=/nowhere"], 1)):
            code, output = self.work(*flags, program=NODE_WORKER).end()
            self.assertEqual(code, expected, output)
            self.assertEqual(output.count("\n"), 1, output)
            self.assertIn("worker.js: ", output)


if __name__ == "__main__":
    recorded_tests.main()
