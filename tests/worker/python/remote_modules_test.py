#!/usr/bin/env python3
"""Modules on model servers, in Python: those who serve and those who train, alone and beside programs in C++."""

import os
import re
import signal
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "testing")]
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402
from ports import free_port  # noqa: E402
from python_test import PACKAGE, PYTHON, crc_of, launch, started  # noqa: E402

PROGRAM = [PYTHON, os.path.join(HERE, "remote_modules.py")]
EXAMPLE = [PYTHON, os.path.join(PACKAGE, "examples", "remote_images.py")]
SERVER = os.path.abspath("server/sluice_server")
CPP_SERVER = os.path.abspath("worker/torch/examples/module_server")
CPP_TRAINER = os.path.abspath("worker/torch/examples/module_trainer")


class RemoteModulesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def at(self, name):
        return f"unix:{self.folder}/{name}"

    def start(self, words):
        process = started(words)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def ended(self, process, code=0):
        """Waits, and returns what it has said."""
        said, error = process.communicate(timeout=100)
        self.assertEqual(process.returncode, code, said + error)
        return said + error

    def play(self, ranks, *words):
        """Under mpirun, where rank 0 has the parameters and the model."""
        ended = launch(ranks, [*PROGRAM, *words])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return ended

    def serve(self, name="server", workers=1, *flags):
        return self.start([SERVER, f"--listen={self.at(name)}", f"--workers={workers}", *flags])

    def model_server(self, server="server", at="model", kind="net", *flags):
        """Of a parameter server. Waits until it listens."""
        process = self.start([*PROGRAM, "serves", self.at(at), kind, *flags, f"--sluice-server={self.at(server)}"])
        for line in process.stderr:
            if "model server listens" in line:
                break
        return process

    def trainer(self, scenario, *words, name="a"):
        return self.start([*PROGRAM, scenario, self.at("model"), *words, f"--sluice-server={self.at('model')}", f"--sluice-name={name}",
                           "--sluice-connect-timeout=5"])

    def test_trainers_end_with_the_bits_of_workers_that_compute_themselves(self):
        for flags in ([], ["--sluice-push-encoding=int8"]):
            ended = self.play(3, "train_as_workers_do", self.at("model"), *flags)
            self.assertEqual(crc_of(ended), crc_of(self.play(3, "compute_themselves", *flags)))
            self.assertEqual(len(set(re.findall("^final .*$", ended.stdout, re.M))), 1, ended.stdout)
            self.assertIn("served 0\n", ended.stdout)

    def test_two_modules_in_a_row_train_as_one(self):
        servers = [self.serve("server-1"), self.serve("server-2")]
        models = [self.model_server("server-1", "first", "first"), self.model_server("server-2", "second", "second")]
        trainer = self.start([*PROGRAM, "train_halves", self.at("first"), self.at("second"), f"--sluice-server={self.at('first')}"])
        self.assertIn("halves True", self.ended(trainer))
        for process in models + servers:
            self.ended(process)

    def test_gradients_and_methods_come_as_they_are_there(self):
        self.assertIn("used", self.play(2, "use_it", self.at("model")).stdout)

    def test_what_is_wrong_raises_an_error_that_says_so(self):
        said = self.play(2, "make_mistakes", self.at("model"))
        self.assertIn("mistaken", said.stdout)
        self.assertRegex(said.stderr, "(?s)Traceback .*KeyError: 'thirteen'")  # for those who have the model
        self.assertEqual(re.findall(r"\(TypeError number (\d+)\)", said.stderr), ["1", "2", "4", "8"])
        self.assertEqual(re.findall(r"^  steps +(\d+)$", said.stdout, re.M), ["2"])

    def test_what_cannot_be_served_is_told(self):
        self.serve()
        told = self.start([*PROGRAM, "serves_and_is_told", self.at("model"), f"--sluice-server={self.at('server')}"])
        self.assertIn("told", self.ended(told))

    def test_a_trainer_without_a_server_or_a_token_is_told(self):
        self.assertIn("nobody", self.ended(self.trainer("find_nobody")))
        token = os.path.join(self.folder, "token")
        with open(token, "w", encoding="utf-8") as file:
            file.write("0123456789abcdef0123456789abcdef\n")
        os.chmod(token, 0o600)
        self.serve("server", 1, f"--token-file={token}")
        self.model_server("server", "model", "net", f"--sluice-token-file={token}")
        self.assertIn("no token", self.ended(self.trainer("know_no_token")))
        self.assertIn("used", self.ended(self.trainer("use_it", f"--sluice-token-file={token}")))

    def test_a_model_server_that_is_killed_is_told(self):
        self.serve()
        model = self.model_server()
        trainer = self.trainer("outlive_it")
        self.assertEqual(trainer.stdout.readline(), "stepped\n")
        model.kill()
        model.wait()
        trainer.stdin.write("\n")
        trainer.stdin.flush()
        self.assertIn("outlived", self.ended(trainer))

    def test_the_interpreters_lock_is_free_while_a_trainer_waits(self):
        self.serve(workers=2)
        model = self.model_server()
        first = self.trainer("wait_in_a_step")
        self.assertEqual([first.stdout.readline() for _ in range(2)], ["waits\n", "counted\n"])
        second = self.trainer("wait_in_a_step", name="b")
        self.assertIn("went on True", self.ended(first))
        self.ended(second)
        self.assertIn("served 0", self.ended(model))

    def test_ctrl_c_ends_a_model_server_whose_trainer_waits(self):
        self.serve(workers=2)
        model = self.model_server()
        trainer = self.trainer("wait_in_a_step")  # for another one, which does not come
        self.assertEqual([trainer.stdout.readline() for _ in range(2)], ["waits\n", "counted\n"])
        model.send_signal(signal.SIGINT)
        self.assertRegex(self.ended(model, -signal.SIGINT), "KeyboardInterrupt")
        self.assertIn("gone", self.ended(trainer))

    def test_ctrl_c_in_a_trainer_that_waits_ends_it(self):
        self.serve(workers=2)
        self.model_server()
        trainer = self.trainer("wait_in_a_step")
        self.assertEqual([trainer.stdout.readline() for _ in range(2)], ["waits\n", "counted\n"])
        trainer.send_signal(signal.SIGINT)
        self.assertIn("interrupted", self.ended(trainer, -signal.SIGINT))

    def test_a_trainer_that_an_exception_ends_is_lost_and_one_of_its_name_takes_its_place(self):
        server = self.serve("server", 1, "--lease=600")  # another process takes the place, however long it takes to start
        model = self.model_server()
        self.assertIn("LookupError: no more data", self.ended(self.trainer("fail"), 1))
        line = next(line for line in server.stderr if "was lost" in line)
        self.assertRegex(line, r'at step 1 a worker was lost: "a" \(process .*\): its trainer is gone\n')
        self.assertIn("came again", self.ended(self.trainer("come_again")))
        self.assertIn("served 0", self.ended(model))
        self.ended(server)

    def test_what_a_trainer_used_is_freed_when_it_is_gone(self):
        server = self.serve()
        model = self.model_server()
        self.assertIn("came and went", self.ended(self.trainer("come_and_go")))
        self.assertIn("served 0", self.ended(model))
        self.ended(server)

    def test_a_trainer_has_left_if_its_process_ends_with_code_0_and_is_lost_otherwise(self):
        for how in ("local", "global"):
            with self.subTest(how):
                server, model = self.serve(), self.model_server()
                self.ended(self.trainer("end_with", "0", how))
                self.assertIn("served 0", self.ended(model))
                self.assertNotIn("was lost", self.ended(server))
                server, model = self.serve(), self.model_server()
                self.ended(self.trainer("end_with", "3", how), 3)
                self.assertIn("its trainer is gone", next(line for line in server.stderr if "was lost" in line))
                for process in (model, server):
                    process.kill()
                    process.wait()

    def test_a_model_server_in_cpp_serves_trainers_in_python(self):
        server = self.serve()
        model = self.start([CPP_SERVER, f"--server={self.at('server')}", f"--at={self.at('model')}"])
        self.assertIn("trained on images", self.ended(self.trainer("train_on_images")))
        self.ended(model)
        self.ended(server)

    def test_a_model_server_in_python_serves_trainers_in_cpp(self):
        server = self.serve()
        model = self.model_server("server", "model", "tutorial")
        self.assertIn("images/s", self.ended(self.start([CPP_TRAINER, f"--server={self.at('model')}", "--batches=3", "--no-test"])))
        self.assertIn("served 0", self.ended(model))
        self.assertRegex(self.ended(server), r"\n  steps +3\n")

    def test_the_example_learns(self):
        ended = launch(3, [*EXAMPLE, f"--at=127.0.0.1:{free_port()}", "--max-steps=150"])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertGreater(float(re.search("test accuracy ([0-9.]+)", ended.stdout).group(1)), 0.6)
        self.assertEqual(len(re.search(r"wrong of each class: \[(.*)\]", ended.stdout).group(1).split(", ")), 10)
        self.assertIn("'fc3.bias': ", ended.stdout)


if __name__ == "__main__":
    recorded_tests.main()
