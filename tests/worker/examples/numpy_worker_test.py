#!/usr/bin/env python3
"""The worker in numpy against a real server, and against the same training in plain numpy."""

import collections
import os
import shutil
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "testing")]
# pylint: disable=wrong-import-position
import example_job  # noqa: E402
import recorded_tests  # noqa: E402
from example_job import accuracy, trained  # noqa: E402
from lossy_link import LossyLink  # noqa: E402


class NumpyWorkerTest(example_job.JobTest):
    def expect_bits(self, expected):
        self.assertEqual(self.parameters().tobytes(), expected.tobytes())

    def test_two_workers_train_to_the_bits_of_plain_sgd(self):
        self.serve("--workers=2")
        for _ in range(2):
            self.work("--max-steps=300")
        rows, lines = self.end()
        self.expect_pushes(rows, steps=300, accepted=600)
        told = collections.Counter(line.split()[-1] for line in lines)
        self.assertEqual(told, {"ACCEPTED": 300, "APPLIED": 300})
        expected = trained(range(300), workers=2)
        self.expect_bits(expected)
        self.assertEqual(rows["test accuracy"], f"{accuracy(expected):.4f}")
        self.assertGreater(float(rows["test accuracy"]), 0.78)

    def test_vectors_may_be_cut_into_several_chunks(self):
        self.serve("--workers=1")
        self.work("--max-steps=5", changes="worker.CHUNK = 1000")
        rows, _ = self.end()
        self.expect_pushes(rows, accepted=5)
        self.expect_bits(trained(range(5), workers=1))

    def test_a_push_whose_answer_was_lost_is_repeated_and_counts_once(self):
        self.serve("--workers=1")
        # The offer of parameters, the first push, and a half of the second.
        link = LossyLink(self, self.address, silent_after=int(2.5 * 4 * 784 * 10))
        self.work("--max-steps=5", server=link.address)
        self.await_state(lambda state: state.step == 2)
        link.cut()
        rows, lines = self.end()
        self.expect_pushes(rows, steps=5, accepted=5, duplicate=1)
        self.assertEqual([line.split()[-1] for line in lines], ["APPLIED"] * 5)
        self.expect_bits(trained(range(5), workers=1))

    def test_a_call_that_the_server_cancels_is_repeated_in_another_session(self):
        self.serve("--workers=1")
        # As a server that ends: the call stops, and no reason comes with that.
        self.work("--max-steps=3", changes="""
pull, pulls = worker.Worker.pull, []
def cancelled_once(self, **condition):
    pulls.append(condition)
    if "after" not in condition or len(pulls) != 3:
        return pull(self, **condition)
    answers = self.server.PullParams(worker.ps.PullParamsRequest(session=self.welcome.session, min_step=9), metadata=self.token)
    answers.cancel()
    return next(answers)
worker.Worker.pull = cancelled_once""")
        rows, lines = self.end()
        self.expect_pushes(rows, accepted=3, duplicate=1)
        self.expect_bits(trained(range(3), workers=1))
        self.assertEqual([line.split()[-1] for line in lines], ["APPLIED"] * 3)

    def test_goes_on_to_the_same_bits_when_the_server_is_killed(self):
        flags = ["--workers=2", "--durability=journal"]
        self.serve(*flags)
        self.work("--max-steps=40", "--name=first")
        self.work("--max-steps=40", "--name=second", changes=self.held_at(20))
        self.await_state(lambda state: state.step == 19 and state.current.contributed == ["first"])
        self.server.stop()
        self.serve(*flags)
        self.let_go()
        rows, lines = self.end()
        self.assertEqual(rows["steps"], "40")
        told = collections.Counter(line.split()[-1] for line in lines)
        self.assertEqual(told, {"ACCEPTED": 40, "APPLIED": 40})
        self.expect_bits(trained(range(40), workers=2))

    def test_gives_up_a_push_of_which_a_blank_server_knows_nothing(self):
        self.serve("--workers=1")
        self.work("--max-steps=8", changes=self.held_at(5))
        self.await_state(lambda state: state.step == 4)
        self.server.stop()
        shutil.rmtree(f"{self.folder}/checkpoints")
        self.serve("--workers=1")
        self.let_go()
        rows, lines = self.end()
        self.assertEqual([line.split()[-1] for line in lines], ["APPLIED"] * 4 + ["GIVEN_UP"] + ["APPLIED"] * 3)
        self.expect_pushes(rows, accepted=3)
        self.expect_bits(trained([0, 1, 2, 3, 5, 6, 7], workers=1))

    def test_a_stale_push_is_a_normal_answer(self):
        self.serve("--workers=1", "--mode=bounded", "--max-staleness=0")
        self.work("--max-steps=3", changes=self.held_at(2))
        self.await_state(lambda state: state.step == 1)
        other = self.work("--max-steps=5")
        self.assertEqual(other.end()[0], 0)
        self.let_go()
        rows, lines = self.end()
        self.assertEqual([line.split()[-1] for line in lines[:3]], ["APPLIED", "STALE_DROPPED", "APPLIED"])
        self.expect_pushes(rows, accepted=7, stale=1)

    def test_presents_the_token(self):
        token = os.path.join(self.folder, "token")
        with open(os.open(token, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write("secret-of-this-job\n")
        self.serve("--workers=1", f"--token-file={token}")
        code, output = self.work("--max-steps=1").end()
        self.assertEqual((code, output.count("\n")), (1, 1), output)
        self.workers.clear()
        self.work("--max-steps=1", f"--token-file={token}")
        rows, _ = self.end()
        self.expect_pushes(rows, accepted=1)

    def test_says_in_one_sentence_why_it_fails(self):
        self.serve("--workers=1")
        for flags, expected in ((["--learning-rate=-1"], 2), (["--max-steps=many"], 2), (["--data-dir=/nowhere"], 1)):
            code, output = self.work(*flags).end()
            self.assertEqual(code, expected, output)
            self.assertIn("worker.py: ", output.splitlines()[-1])
            self.assertNotIn("Traceback", output)


if __name__ == "__main__":
    recorded_tests.main()
