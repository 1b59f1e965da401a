#!/usr/bin/env python3
"""Workers in plain C, which use sluice.h and the shared library, with a server of their own or another."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "testing"))
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402

WORKER = os.path.abspath("tests/worker/c/worker")
MODULE_WORKER = os.path.abspath("tests/worker/c/module_worker")
MEAN_WORKER = os.path.abspath("tests/worker/c/mean_worker")
CHECKPOINT_READER = os.path.abspath("tests/worker/c/checkpoint_reader")
TABLE_WORKER = os.path.abspath("tests/worker/c/table_worker")
ENDING_WORKER = os.path.abspath("tests/worker/c/ending_worker")
SERVER = os.path.abspath("server/sluice_server")
STEPS = 20
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(words):
    return subprocess.run(words, env={**os.environ, **MPI}, capture_output=True, text=True, check=False, timeout=120)


class EndingTest(unittest.TestCase):
    def end(self, how, code, lease):
        """Returns a server, whose one worker ends so, and that worker's process id."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        server = subprocess.Popen([SERVER, f"--listen=unix:{folder.name}/server", "--workers=1", f"--lease={lease}"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        with subprocess.Popen([ENDING_WORKER, how, str(code), f"--sluice-server=unix:{folder.name}/server",
                               "--sluice-name=w"]) as worker:
            self.assertEqual(worker.wait(100), code)
        return server, worker.pid

    def test_a_worker_that_has_not_left_is_lost_at_once(self):
        for how, code, why in (("free", 0, "its client was freed before it had left the job"),
                               ("fail", 1, "no more data"),
                               ("exit", 3, "its process ended with exit code 3")):
            with self.subTest(how):
                server, process = self.end(how, code, 600)
                line = next(line for line in server.stderr if "was lost" in line)
                self.assertRegex(line, rf'at step 1 a worker was lost: "w" \(process {process} on .*\): {why}\n')

    def test_a_worker_that_has_left_or_ends_with_0_ends_the_job(self):
        for how in ("leave", "exit"):
            with self.subTest(how):
                server, _ = self.end(how, 0, 600)
                self.assertEqual(server.wait(100), 0)

    def test_the_code_says_that_no_worker_has_left(self):
        server, _ = self.end("free", 0, 1)
        self.assertEqual(server.wait(100), 3)


class CTest(unittest.TestCase):
    def test_workers_of_a_launch_end_with_the_parameters_of_their_gradients(self):
        self.train()

    def test_one_buffer_carries_gradients_and_parameters_in_turn(self):
        said = self.train("one-buffer")
        for line in (
                "one buffer: the parameters are the floats of the gradient's buffer; call sluice_set_restore() before "
                "sluice_join(), or give sluice_client_create() other memory for them",
                "no restore: the function of sluice_set_restore() is NULL, expected one that writes the parameters",
                "restore twice: sluice_set_restore() may be called once, before sluice_join()"):
            self.assertEqual(said.count(line), 2, said)

    def train(self, *arguments):
        """Returns the lines of a launch with two workers."""
        launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "3"]
        ended = run([*launch, WORKER, str(STEPS), *arguments, "--sluice-mode=sync"])
        said = ended.stdout.splitlines()
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        # Each step takes learning rate x (1 + 2) / 2 off: exact in float32. The first has twice the rate of the weight.
        weight, bias = 100 - 0.5 * 1.5 * (STEPS + 1), 200 - 0.25 * 1.5 * STEPS
        self.assertEqual(said.count(f"final step {STEPS}, weight {weight:g}, bias {bias:g}"), 2, ended.stdout)
        self.assertEqual(said.count(f"step {STEPS}, staleness 0"), 2)
        for place in (0, 1):
            self.assertIn(f"place {place} of 2, parameter 100", said)
        told = [" ".join(line.split()) for line in said]
        self.assertIn(f"accepted {2 * STEPS}", told)
        self.assertTrue(any(line.startswith("best") and "0.5" in line for line in told), ended.stdout)
        return said

    def test_a_model_server_computes_for_a_trainer(self):
        with tempfile.TemporaryDirectory() as folder:
            ended = run(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2", MODULE_WORKER, f"unix:{folder}/model"])
        said = ended.stdout.splitlines()
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        for line in (f"serves at unix:{folder}/model", "place 0 of 1", "output 30", "gradient of the input 10", "gradient of weight 3",
                     "step 1", "output 34", "gradient of the input 8.5", "gradient of weight 4", "step 2", "counted 2 in 8 bytes",
                     "no step: this gradient is too large",
                     "other: there is only count", "nowhere: the model server's address is NULL, expected host:port or unix:/path",
                     "early: sluice_module_ask() was called before sluice_module_enter() has ended"):
            self.assertEqual(said.count(line), 1, ended.stdout)
        self.assertIn("torn: a tensor of shape () and elements of 8 bytes has 3 bytes; expected as many as its shape says", ended.stdout)
        self.assertIn("too large: the tensors of one call have 1099511627776 bytes, expected at most 67108864; name fewer", ended.stdout)
        self.assertIn("kind: sluice_module_ask() got the kind 99 with 0 tensors", ended.stdout)
        self.assertIn("steps 2", [" ".join(line.split()) for line in said])

    def test_what_is_wrong_is_said_in_a_sentence(self):
        launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2"]
        ended = run([*launch, WORKER, "1"])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        for line in (
                'optimizer: there is no optimizer "sgdd"; expected sgd, adam, adamw, adagrad, rmsprop, lamb, mean_gradient, '
                'averaging or program; did you mean sgd?',
                'option: [BAD_OPTIMIZER] "lr" is not an option of sgd, which has learning_rate, momentum, dampening, '
                "weight_decay and nesterov",
                "buffer: the buffer of the gradient has 8 elements, the model has 9",
                "before it joins: sluice_push() was called before sluice_join()",
                "two buffers: sluice_set_restore() is for parameters that are the floats of the gradient's buffer, and these "
                "are in other memory; do not call it",
                "changed: weight[0] of the gradient has changed after it was sent early; change it before that, or send "
                "nothing early (sluice_send_early(), or overlap in Python)",
                "twice: sluice_send_early() sends each element once: chunk of 3 elements at offset 6 overlaps elements from 6 "
                "on, which arrived before; sluice_give_up_early() drops what was sent",
                "large: [BAD_ARGUMENT]",
                "no name: the name of a tensor is NULL, expected a text",
                "dimensions: weight has 1000000000000 dimensions, expected at most 8",
                "again: sluice_start() was called twice; keep the job of the first call",
                "no model name: sluice_job_model() got NULL for the model's name, expected a text",
                'model name: the model\'s name is "two words", expected at most 64 letters, digits, ".", "-" and "_", the first '
                "a letter or a digit",
                "connect: --epochs is not a flag",
                "no server: no server: give --server=host:port or --server=unix:/path",
                "at the end: step 1",
                "followed step 0, parameter 100, then step 1, parameter 99; ended",
                "no group: sluice_set_options() got group 2, the optimizer has 1 groups, which are counted from 1",
                'no option: "lr" is not an option of sgd, which has learning_rate, momentum, dampening, weight_decay and '
                "nesterov",
                "no norm: the clip norm is 0, expected a finite number above 0",
                "second: this process trains a model without a name already, and a job has one of them; give the second model "
                "a name (name= in Python, Job::Model() in C++), or one optimizer all parameters, in groups if they differ, or "
                "leave with the other optimizer before"):
            self.assertIn(line, ended.stdout.splitlines())

    def test_a_running_mean_follows_the_batches_of_stale_workers(self):
        for servers in (1, 2):
            self.train_means(servers)

    def train_means(self, servers):
        launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(servers + 2)]
        ended = run([*launch, MEAN_WORKER, "5", "--sluice-mode=async", "--sluice-staleness-rules=none",
                     f"--sluice-servers={servers}"])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        said = ended.stdout.splitlines()
        # Each of ten batches halves it, however stale they are.
        self.assertEqual(said.count(f"weight 90, mean {1024 / 2**10:.3f}"), 2, ended.stdout)
        for line in (
                'parameter: the running means of elements 0 to 1 have elements of "weight", which is parameter, expected '
                "statistic",
                "endless: the running means of elements 1 to 18446744073709551615 are not in the vector, which has 2",
                "growing: the running means of elements 1 to 2 have decay 1.5, expected 0 to 1",
                "early: sluice_set_running_means() was called before sluice_join()",
                "untyped: the name of a constant's type is NULL, expected a text",
                "nowhere: the data of the constant process is NULL, expected 8 bytes",
                'odd: constant 0 of the layout ("process"): it has the type I65, expected one of safetensors, such as I64',
                "late: sluice_keep_running_means() may be called before sluice_join() only"):
            self.assertEqual(said.count(line), 2, ended.stdout)
        constants = [line for line in said if line.startswith("constant ")]
        self.assertEqual((len(constants), len(set(constants))), (2, 1), ended.stdout)  # those of the first

    def test_workers_train_a_table(self):
        for servers in (1, 2):
            launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(servers + 2)]
            ended = run([*launch, TABLE_WORKER, str(STEPS), "--sluice-mode=sync", f"--sluice-servers={servers}"])
            self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
            # A step takes learning rate x 1 / 2 off the rows of the places, and x (1 + 2) / 2 off row 10.
            own, common = -0.5 * 0.5 * STEPS, -0.5 * 1.5 * STEPS
            rows = f"rows {own:g} {own:g}, {own:g} {own:g}, {common:g} {common:g}, 0 0"
            said = ended.stdout.splitlines()
            self.assertEqual(said.count(rows), 2, ended.stdout)
            followed = f"followed step {STEPS}, rows {own:g} {own:g}, {common:g} {common:g}"
            self.assertEqual(said.count(followed), 2, ended.stdout)
            at_the_end = f"at the end {own:g} {own:g}, {common:g} {common:g}"  # pulled twice by each worker
            self.assertEqual(said.count(at_the_end), 4, ended.stdout)
            for line in (
                    "no name: the name of a table is NULL, expected a text",
                    "initializer: the initializer of table items is 3, expected SLUICE_ROWS_ZERO to SLUICE_ROWS_NORMAL",
                    "divisor: the divisor of table items is -1, expected SLUICE_ALL_CONTRIBUTORS or SLUICE_ROW_CONTRIBUTORS",
                    "lamb: [BAD_OPTIMIZER]",
                    "early: sluice_pull_rows() was called before sluice_join()",
                    "prefetched early: sluice_prefetch_rows() was called before sluice_join()",
                    "prefetched ids: sluice_prefetch_rows() got the id 4 after 5; sort the ids, and give each once",
                    "prefetched meanwhile: sluice_prefetch_rows() was called while another call is under way; wait for "
                    "that first",
                    "twice: sluice_set_tables() may be called once, before sluice_join()",
                    "table: sluice_pull_rows() got table 1, the model has 1 tables, which are counted from 0",
                    "ids: sluice_set_row_gradients() got the id 4 after 5; sort the ids, and give each once",
                    "no table: sluice_follow_rows() got table 0, the model has 0 tables, which are counted from 0",
                    "follower: sluice_follower_set_tables() may be called once, before sluice_follow()",
                    "gradients at the end: sluice_set_row_gradients() was called after this worker has left",
                    "pulled after the report: rows are pulled after this worker has left the job; pull them before it "
                    "leaves, or after it has awaited the end of training and before it reports"):
                self.assertEqual(said.count(line), 2, ended.stdout)

    def test_workers_train_a_model_of_tables_only_which_goes_on_from_a_checkpoint(self):
        for servers in (1, 3):
            with self.subTest(servers=servers), tempfile.TemporaryDirectory() as folder:
                launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(servers + 2), TABLE_WORKER, str(STEPS),
                          "no-tensor", "--sluice-mode=sync", f"--sluice-servers={servers}",
                          f"--sluice-checkpoint-dir={folder}"]
                for runs in (1, 2):
                    ended = run(launch)
                    self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
                    own, common = -0.5 * 0.5 * STEPS * runs, -0.5 * 1.5 * STEPS * runs
                    said = ended.stdout.splitlines()
                    for line in (
                            f"rows {own:g} {own:g}, {own:g} {own:g}, {common:g} {common:g}, 0 0",
                            f"followed step {STEPS * runs}, rows {own:g} {own:g}, {common:g} {common:g}",
                            "no model: the model has neither tensors nor tables, expected at least one of either; give it "
                            "tensors, or call sluice_set_tables() first",
                            "nothing to follow: the model has neither tensors nor tables, expected at least one of either; "
                            "give it tensors, or call sluice_follower_set_tables() first"):
                        self.assertEqual(said.count(line), 2, ended.stdout)
                read = run([CHECKPOINT_READER, folder, "items"])
                self.assertEqual(read.stdout.splitlines()[1:], [
                    f"step {2 * STEPS} of checkpoint-000002-{2 * STEPS:012}.safetensors",
                    f"row 0: {own:g} {own:g}", f"row 1: {own:g} {own:g}", f"row 10: {common:g} {common:g}"], read.stdout)

    def test_a_checkpoint_of_any_number_of_servers_has_the_values_and_the_rows(self):
        for servers in (1, 2):
            with tempfile.TemporaryDirectory() as folder:
                launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(servers + 2)]
                ended = run([*launch, TABLE_WORKER, str(STEPS), "--sluice-mode=sync", f"--sluice-servers={servers}",
                             f"--sluice-checkpoint-dir={folder}"])
                self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
                own, common = -0.5 * 0.5 * STEPS, -0.5 * 1.5 * STEPS
                read = run([CHECKPOINT_READER, folder, "items"])
                self.assertEqual(read.returncode, 0, read.stdout)
                said = read.stdout.splitlines()
                self.assertEqual(said[:2], ["no name: the name of a checkpoint is NULL, expected a text",
                                            f"step {STEPS} of checkpoint-000001-{STEPS:012}.safetensors"])
                self.assertEqual(said[-3:], [f"row 0: {own:g} {own:g}", f"row 1: {own:g} {own:g}",
                                             f"row 10: {common:g} {common:g}"])
                other = run([CHECKPOINT_READER, folder, "users"])
                self.assertEqual(other.returncode, 1)
                self.assertRegex(other.stdout, 'rows: .* has no table "users"; its tables are: items')
        nowhere = run([CHECKPOINT_READER, "/nowhere", "items"])
        self.assertEqual(nowhere.returncode, 1)
        self.assertRegex(nowhere.stdout, "open: .*/nowhere")

    def test_a_wrong_flag_or_no_server_is_an_error_and_no_exit(self):
        wrong = run([WORKER, "1", "--sluice-server=127.0.0.1:1", "--sluice-connections=many"])
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("start: [] worker: --sluice-connections: ", wrong.stderr)
        unknown = run([WORKER, "1", "--sluice-conections=4"])
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("Sluice has no flag --sluice-conections; the nearest is --sluice-connections\n", unknown.stderr)
        alone = run([WORKER, "1"])
        self.assertEqual(alone.returncode, 2)
        self.assertIn("no server: give --sluice-server=host:port", alone.stderr)
        absent = run([WORKER, "1", "--sluice-server=127.0.0.1:1", "--sluice-connect-timeout=0"])
        self.assertEqual(absent.returncode, 3)
        self.assertIn("127.0.0.1:1", absent.stderr)


if __name__ == "__main__":
    recorded_tests.main()
