#!/usr/bin/env python3
"""The Python package: workers in Python train as those in C++, and what PyTorch's users do to a model is minded."""

import itertools
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "testing"))
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402

TREE = os.path.dirname(os.path.realpath("WORKSPACE"))
PACKAGE = os.path.join(TREE, "worker", "python")
PYTHON = "/usr/bin/python3"  # it has the distribution's torch
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1",
               "SLUICE_LIBRARY": os.path.abspath("worker/c/libsluice.so.0"),
               "USE_LIBUV": "0"}  # for DistributedDataParallel: Debian's PyTorch 2.6 has no libuv
IMAGES = [PYTHON, os.path.join(PACKAGE, "examples", "images.py")]
SCENARIOS = [PYTHON, os.path.join(HERE, "scenarios.py")]


def launch(ranks, words, **environment):
    """Runs ranks under mpirun, of which the first serves. Returns what they print."""
    ended = subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), *words],
                           env={**ENVIRONMENT, **environment}, capture_output=True, text=True, check=False, timeout=200)
    return ended


def started(words, **options):
    # A shell that starts a process in the background lets it ignore SIGINT, and so would its children.
    return subprocess.Popen(words, env={**ENVIRONMENT, **options}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def crc_of(ended):
    return re.search(r"parameters' CRC-32 +([0-9a-f]{8})", ended.stdout).group(1)


class AsInCppTest(unittest.TestCase):
    """Three workers in Python end with the bits of three in C++."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.first = os.path.join(cls.folder.name, "first.pt")
        cls.common = ["--max-steps=40", "--learning-rate=0.05", "--momentum=0.9", f"--init-from={cls.first}"]
        subprocess.run([PYTHON, "-c", "import torch, images; "
                        "torch.manual_seed(7); torch.save(dict(images.LeNet().state_dict()), "
                        f"'{cls.first}')"], env={**ENVIRONMENT, "PYTHONPATH": f"{PACKAGE}:{PACKAGE}/examples"}, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def crc(self, words, *flags):
        ended = launch(4, [*words, *self.common, *flags])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return crc_of(ended)

    def in_cpp(self, *flags):
        return self.crc([os.path.abspath("worker/sluice_train"), "--progress=off", "--no-test"], *flags)

    def test_in_sync_also_with_overlap(self):
        expected = self.in_cpp()
        self.assertEqual(self.crc(IMAGES), expected)
        self.assertEqual(self.crc(IMAGES, "--overlap"), expected)
        self.assertNotEqual(self.crc(IMAGES, "--learning-rate=0.06"), expected)

    def test_with_an_encoding_and_error_feedback(self):
        self.assertEqual(self.crc(IMAGES, "--sluice-push-encoding=int8"), self.in_cpp("--push-encoding=int8"))

    def test_with_two_servers(self):
        self.assertEqual(self.crc(IMAGES, "--max-steps=10", "--sluice-servers=2"),  # and two workers
                         self.in_cpp("--max-steps=10", "--servers=2"))

    def test_with_local_steps_the_last_of_which_are_pushed_at_the_end(self):
        self.assertEqual(self.crc(IMAGES, "--local-steps=6"), self.in_cpp("--local-steps=6"))


class ScenarioTest(unittest.TestCase):
    def play(self, name, workers, *flags):
        ended = launch(workers + 1, [*SCENARIOS, name, *flags])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return ended.stdout.splitlines()

    def test_what_is_wrong_raises_an_error_that_says_so(self):
        self.assertIn("done", self.play("what_is_wrong", 1))

    def test_gradients_that_are_no_views_any_more_count(self):
        self.assertIn("weight -3.0 bias 0.0 step 5 applied", self.play("gradients_that_are_no_views", 1))

    def test_a_sparse_gradient_counts_as_a_dense_one(self):
        for variables, tables in (([], 5), (["OVERLAP=1"], 5), (["ALONE=1"], 2)):
            with self.subTest(variables=variables):
                ended = launch(3, ["env", *variables, *SCENARIOS, "has_sparse_gradients"])
                self.assertEqual(ended.stdout.splitlines().count(f"tables {tables} as expected"), 2,
                                 ended.stdout + ended.stderr)

    def test_groups_other_types_statistics_and_frozen_parameters(self):
        said = self.play("groups_and_types", 2)
        self.assertEqual(said.count("weight 0.5 frozen 2.0 double 2.75 mean 5.0"), 2, said)

    def test_a_model_in_bfloat16_trains_by_steps_below_its_last_bit(self):
        for workers, flags in ((3, []), (3, ["--pull-encoding=bfloat16"]), (2, ["--servers=2"])):
            ended = launch(4, [*SCENARIOS, "sixteen_bits", *flags])
            self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
            # The server has 1 - k / 2048 after k steps; the model the nearest number of 8 bits, of two the even one.
            line = "below 1, in 1/256: 0.0 0.0 0.0 0.0 1.0 1.0 1.0 1.0 at the end 1.0 bias below 0.5, in 1/512: 2.0"
            self.assertEqual(ended.stdout.splitlines().count(line), workers, ended.stdout)

    def test_a_gradient_in_the_one_buffer_of_a_model_in_bfloat16_is_never_taken_as_parameters(self):
        self.assertIn("weight 0.5", self.play("interrupted_after_a_failed_push", 1))

    def test_parameters_that_are_not_trained_keep_their_bits(self):
        self.assertEqual(self.play("frozen", 3).count("same True"), 3)

    def test_options_that_newer_versions_of_pytorch_always_have(self):
        self.assertIn("done", self.play("new_pytorch", 1))

    def test_a_worker_follows_its_own_job_until_the_end(self):
        said = self.play("follows", 1)
        self.assertEqual([line for line in said if line.startswith(("step 0 w", "step 1 w", "step 2 w", "weight"))],
                         ["step 0 weight 1.0 bias 2.0", "step 1 weight 0.5 bias 1.5", "step 2 weight 0.0 bias 1.0",
                          "weight -0.5"])

    def test_rows_of_the_last_step_are_pulled_between_the_end_of_training_and_the_report(self):
        for servers in (1, 2):
            with self.subTest(servers=servers):
                said = self.play("has_rows_at_the_end", 1 + servers, f"--servers={servers}", "--mode=sync")
                self.assertEqual(said.count("at the end [[[-2.5]], [[0.0]]]"), 4, said)

    def test_a_follower_has_the_rows_of_its_step(self):
        said = self.play("follows_embeddings", 1)
        self.assertEqual([line for line in said if "rows" in line],
                         ["step 0 rows [[0.0, 0.0], [0.0, 0.0]] bias 2.0", "step 1 rows [[0.0, 0.0], [-0.5, -0.5]] bias 1.5",
                          "step 2 rows [[0.0, 0.0], [-1.0, -1.0]] bias 1.0",
                          "rows at the end [[0.0, 0.0], [-1.5, -1.5]]"])

    def test_what_is_wrong_with_following_raises_an_error(self):
        ended = launch(2, ["env", "-u", "SLUICE_SERVER", *SCENARIOS, "follows_what_is_wrong"])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertIn("done", ended.stdout.splitlines())

    def test_a_setting_that_is_unknown_is_an_error(self):
        ended = launch(1, [*SCENARIOS, "unknown_setting", "--server=127.0.0.1:1"])
        self.assertEqual(ended.returncode, 2, ended.stdout + ended.stderr)
        self.assertIn("Sluice has no flag --sluice-moed; the nearest is --sluice-mode\n", ended.stderr)

    def test_flags_without_the_prefix_are_the_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            program = f"{folder}/program.py"
            with open(program, "w", encoding="utf-8") as file:
                file.write(self.HAS_FLAGS)
            own = ["--workers", "4", "--config", "my.yaml", "--mode=train", "--threads=3", "--push-encoding=int8"]
            ended = launch(3, [PYTHON, program, *own[:3], "--sluice-mode=ssp", *own[3:]])
            self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
            said = ended.stdout.splitlines()
            self.assertEqual(said.count(f"left {own}"), 2, ended.stdout)
            self.assertEqual(sorted(row for line in said if line.startswith("rows ") for row in map(int, line.split()[1:])),
                             list(range(24)), ended.stdout)
            self.assertIn("mode ssp, slack 3; the first step waits for 2 workers", ended.stderr)
            self.assertEqual(ended.stderr.count("--push-encoding is not taken: write --sluice-push-encoding\n"), 1,
                             ended.stderr)
            wrong = launch(3, [PYTHON, program, "--sluice-workrs=4"])
            self.assertEqual(wrong.returncode, 2, wrong.stdout + wrong.stderr)
            self.assertEqual(wrong.stderr.count("Sluice has no flag --sluice-workrs; the nearest is --sluice-workers\n"), 1,
                             wrong.stderr)

    HAS_FLAGS = """
import sys, sluice
if __name__ == "__main__":
    job = sluice.start()
    if job.is_server:
        sys.exit(job.serve())
import argparse, torch
parser = argparse.ArgumentParser()
for name in ("--workers", "--config", "--mode", "--threads", "--push-encoding"):
    parser.add_argument(name, required=True)
parser.parse_args()
model = torch.nn.Linear(1, 1)
optimizer = sluice.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), job)
used = []
for rows in sluice.DistributedSampler(24, 4, optimizer):
    used += map(str, rows)
    optimizer.zero_grad()
    model(torch.ones(len(rows), 1)).sum().backward()
    optimizer.step(samples=len(rows))
optimizer.leave()
print("left", sys.argv[1:], flush=True)
print("rows", *used, flush=True)
"""

    def test_forked_children_leave_the_connection_alone(self):
        said = self.play("forks", 1)  # a third of the batches for each way in which children begin
        self.assertIn("weight -1.0 batches 16", said)

    UNGUARDED = """
import sys, sluice
job = sluice.start()
if job.is_server:
    sys.exit(job.serve())
import torch
data = torch.utils.data.TensorDataset(torch.ones(8, 3))
for rows in torch.utils.data.DataLoader(data, num_workers=1, multiprocessing_context=sys.argv[1]):
    print("not reached")
"""

    def test_a_child_that_imports_the_script_may_not_start_the_job_again(self):
        with tempfile.TemporaryDirectory() as folder:
            program = f"{folder}/program.py"
            with open(program, "w", encoding="utf-8") as file:
                file.write(self.UNGUARDED)
            for context in ("spawn", "forkserver"):
                for words in (["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2"], []):
                    flags = [] if words else ["--sluice-server=127.0.0.1:1"]
                    ended = subprocess.run([*words, PYTHON, program, context, *flags], env=ENVIRONMENT, check=False,
                                           capture_output=True, text=True, timeout=200)
                    self.assertNotEqual(ended.returncode, 0)
                    self.assertNotIn("not reached", ended.stdout)
                    self.assertIn("RuntimeError: sluice.start() was called while a child process, such as a worker of "
                                  "DataLoader, imports the script", ended.stderr)
                    self.assertIn('below `if __name__ == "__main__":`', ended.stderr)

    def test_a_program_may_use_mpi_too(self):
        said = self.play("uses_mpi_too", 2)
        self.assertEqual([line for line in said if line.startswith("weight")], ["weight 0.5"] * 2)
        ended = launch(2, [*SCENARIOS, "uses_mpi_too", "--max-restarts=1"])
        self.assertEqual(ended.returncode, 2, ended.stdout + ended.stderr)
        self.assertIn("--max-restarts starts a rank's program again, which MPI does not allow", ended.stderr)

    def test_a_worker_knows_its_place_before_it_has_a_model(self):
        for flags, workers in (([], 2), (["--servers=2"], 3), (["--max-restarts=1"], 1)):
            with self.subTest(flags=flags):
                said = self.play("knows_its_place", workers + ("--servers=2" in flags), *flags)
                self.assertEqual(sorted(line for line in said if line.startswith("rank")),
                                 [f"rank {rank} of {workers}, the same after the join" for rank in range(workers)])

    def test_by_hand_and_on_a_server_there_is_no_rank(self):
        program = "import os, sluice; job = sluice.start(); os.write(1, f'{job.is_server} {job.rank} {job.size}\\n'.encode())"
        for words, expected in (([PYTHON, "-c", program, "--sluice-server=127.0.0.1:1"], ["False None None"]),
                                (["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "3", PYTHON, "-c", program],
                                 ["False 0 2", "False 1 2", "True None 2"])):
            ended = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=200)
            self.assertEqual(sorted(line for line in ended.stdout.splitlines() if line[:4] in ("Fals", "True")), expected,
                             ended.stderr)

    def test_a_program_that_ends_without_leaving_has_left(self):
        self.assertIn("weight 0.0", self.play("ends_without_leaving", 2))

    def test_a_gradient_outlives_its_optimizer(self):
        self.assertIn("gradient 6.0", self.play("keeps_a_gradient", 1))

    def test_a_gradient_that_is_accumulated_with_overlap_is_an_error_that_ends_the_process(self):
        ended = launch(2, [*SCENARIOS, "accumulates_with_overlap"])
        self.assertEqual(ended.returncode, 1, ended.stdout + ended.stderr)
        self.assertIn("weight 0.0 step 2\n", ended.stdout)
        self.assertIn("twice since the last step(); with overlap, call backward() once for each step()", ended.stderr)

    def test_schedulers_of_pytorch_hold_for_local_steps(self):
        self.assertIn(f"weight {1 - 0.5 - 0.25 - 0.125 - 0.0625}", self.play("schedules", 1))

    def test_every_scheduler_of_pytorch_and_every_changed_option_does_what_it_does_in_one_process(self):
        for kind, *flags in (["sgd"], ["sgd", "--servers=2"], ["sgd", "--overlap"], ["adam"], ["adamw"], ["adagrad"], ["rmsprop"]):
            with self.subTest(kind, flags=flags):
                ended = launch(3 if "--servers=2" in flags else 2, [*SCENARIOS, "follows_schedulers", kind, *flags])
                self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
                said = re.search(r"steps 285 largest difference (\S+)", ended.stdout)
                self.assertLess(float(said.group(1)), 2e-6, ended.stdout)
                self.assertNotIn("UserWarning", ended.stderr)

    def test_rates_change_where_the_workers_have_the_momentum_and_that_does_not(self):
        # 1 - 0.5 * 1 - 1 * (0.5 * 1 + 1), as SGD with momentum makes of two gradients of 1.
        self.assertIn("weight -1.0", self.play("changes_a_corrected_momentum", 1, "--push-encoding=top-k:1:momentum"))

    def test_options_that_differ_are_those_of_worker_0_and_the_other_one_says_so_once(self):
        ended = launch(3, [*SCENARIOS, "has_other_options"])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertEqual(ended.stdout.count("weight 0.0"), 2, ended.stdout)
        # Whoever comes second to a step is told; within four steps that is each of them, or always the same.
        told = re.findall(r"(worker-\d): learning_rate is (\S+), and (\S+) with", ended.stderr)
        self.assertIn(len(told), (1, 2), ended.stderr)
        self.assertEqual(len(set(told)), len(told), ended.stderr)

    def test_embeddings_train_as_those_of_one_process(self):
        for servers in (1, 2):
            ended = launch(2 + servers, [*SCENARIOS, "trains_embeddings", f"--servers={servers}"])
            self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
            self.assertEqual(ended.stdout.count("the same as its twin"), 2)

    def test_rows_have_their_momentum_where_an_encoding_takes_the_vectors(self):
        for encoding in ("float32", "sign:momentum"):
            for servers in (1, 2):
                with self.subTest(encoding=encoding, servers=servers):
                    ended = launch(2 + servers, [*SCENARIOS, "trains_rows_with_momentum", f"--servers={servers}",
                                                 f"--push-encoding={encoding}"])
                    self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
                    self.assertEqual(ended.stdout.count("momentum of rows as expected"), 2)

    def test_prefetched_rows_have_the_bits_of_rows_that_are_not(self):
        for servers in (1, 2):
            with self.subTest(servers=servers):
                rows = []
                for scenario in ("trains_embeddings", "trains_prefetched_embeddings"):
                    ended = launch(2 + servers, [*SCENARIOS, scenario, f"--servers={servers}"])
                    self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
                    self.assertNotIn("joins again", ended.stderr)
                    rows.append(sorted(line for line in ended.stdout.splitlines() if line.startswith(("items", "tags"))))
                self.assertEqual(len(rows[0]), 2, rows)
                self.assertEqual(rows[0], rows[1])

    def test_a_model_of_tables_only_trains_as_in_one_process_and_goes_on_from_its_checkpoint(self):
        for servers in (1, 3):
            with self.subTest(servers=servers), tempfile.TemporaryDirectory() as folder:
                for runs in (1, 2):
                    ended = launch(2 + servers, [*SCENARIOS, "trains_tables_only", f"--servers={servers}",
                                                 f"--checkpoint-dir={folder}", "--push-encoding=auto"])
                    self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
                    said = ended.stdout.splitlines()
                    self.assertEqual(said.count(f"step {5 * runs}"), 2, ended.stdout)
                rows, = [line for line in said if line.startswith("rows ")]
                read = subprocess.run(
                    [PYTHON, "-c", "import sluice, sys\nprint(sluice.load_checkpoint(sys.argv[1]))\n"
                     "ids, rows = sluice.load_table(sys.argv[1], 'rows')\nassert ids.tolist() == list(range(8))\n"
                     "print('rows', rows.tolist())", folder], env=ENVIRONMENT, capture_output=True, text=True, check=True)
                self.assertEqual(read.stdout, f"{{}}\n{rows}\n")

    def test_a_model_of_tables_only_goes_on_from_the_journal_of_a_killed_server(self):
        with tempfile.TemporaryDirectory() as folder:
            words = [os.path.abspath("server/sluice_server"), f"--listen=unix:{folder}/server", "--workers=1",
                     f"--checkpoint-dir={folder}/kept", "--durability=journal"]
            server = started(words)
            worker = started([*SCENARIOS, "pushes_tables_when_told", f"--server=unix:{folder}/server"])
            for process in (server, worker):
                self.addCleanup(ServerElsewhereTest.end, process)
            self.assertEqual(worker.stdout.readline(), "joined\n")
            for line in ("row 0.0 step 1 applied\n", "row -0.5 step 2 applied\n"):
                worker.stdin.write("go on\n")
                worker.stdin.flush()
                self.assertEqual(worker.stdout.readline(), line)
            server.kill()
            server.wait()
            server = started(words)
            self.addCleanup(ServerElsewhereTest.end, server)
            said, errors = worker.communicate("go on\n", timeout=100)
            self.assertEqual(said, "row -1.0 step 3 applied\n", errors)

    def test_the_averages_of_stale_workers_follow_the_batches_of_all(self):
        with tempfile.TemporaryDirectory() as folder:
            words = [os.path.abspath("server/sluice_server"), f"--listen=unix:{folder}/server", "--workers=3", "--mode=async"]
            self.addCleanup(ServerElsewhereTest.end, started(words))
            workers = [started([*SCENARIOS, "normalizes_when_told", f"--server=unix:{folder}/server", f"--name={name}"])
                       for name in "abc"]
            for worker in workers:
                self.addCleanup(ServerElsewhereTest.end, worker)
            for worker in workers:
                self.assertEqual(worker.stdout.readline(), "joined\n")
            mean, variance = 0.0, 1.0  # of a process that sees all batches one after the other
            for step in range(9):
                worker = workers[step % 3]
                worker.stdin.write(f"{8 * step}\n")
                worker.stdin.flush()
                mean, variance = 0.5 * mean + 0.5 * 8 * step, 0.5 * variance
                said = worker.stdout.readline().split()
                self.assertAlmostEqual(float(said[1]), mean, places=3)
                self.assertAlmostEqual(float(said[3]), variance, places=3)
                self.assertEqual(said[5], str(min(step, 2)))
            for value in ("set 100", "set 50"):
                workers[0].stdin.write(value + "\n")
                workers[0].stdin.flush()
                self.assertIn(f"mean {value.split()[1]}.0 variance", workers[0].stdout.readline())

    def test_what_users_do_to_embeddings(self):
        said = self.play("embeddings_and_what_users_do", 1)
        self.assertIn("rows [[-1.5, -1.5], [-1.5, -1.5], [0.0, 0.0]]", said)
        self.assertIn("row [[-0.5, -0.5]] step 4", said)

    def test_rows_do_not_depend_on_the_default_types_of_pytorch(self):
        for kind in ("float32", "float64", "float16"):
            ended = launch(2, ["env", f"DEFAULT={kind}", *SCENARIOS, "has_other_default_types"])
            self.assertIn("first [-0.334, -0.0399, -0.6129, -0.8743] moved "
                          "[[0.5, 0.5, 0.5, 0.5], [1.5, 1.5, 1.5, 1.5], [1.0, 1.0, 1.0, 1.0]]", ended.stdout, ended.stderr)

    def test_buffers_that_a_forward_replaces_are_averaged(self):
        for flags in ([], ["--servers=2"], ["--pull-encoding=bfloat16"]):
            ended = launch(3 + len([flag for flag in flags if "servers" in flag]), [*SCENARIOS, "replaces_buffers", *flags])
            self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
            self.assertEqual(ended.stdout.splitlines().count("ema 3.5 wide 3.5 seen 3"), 2, ended.stdout)

    def test_a_tensor_that_is_replaced_added_or_removed_too_late_is_named(self):
        self.assertIn("done 12", self.play("changes_tensors_too_late", 1))

    def test_what_no_batch_changes_keeps_its_bits(self):
        for flags, local in (([], 0), (["--servers=2"], 0), (["--mode=async"], 0), (["--push-encoding=int8"], 0), ([], 1)):
            with self.subTest(flags=flags, local=local), tempfile.TemporaryDirectory() as folder:
                ended = launch(4 + len([flag for flag in flags if "servers" in flag]),
                               ["env", f"LOCAL_STEPS={local}", *SCENARIOS, "carries_constants", f"--checkpoint-dir={folder}",
                                *flags])
                self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
                self.assertEqual(ended.stdout.count("carried, ema"), 3, ended.stdout)
                if not flags and not local:
                    self.assertEqual(ended.stdout.count("carried, ema 1.96875"), 3, ended.stdout)  # 2 · (1 - 2^-6)

    def test_all_state_is_the_first_workers_and_is_saved_and_restored(self):
        for flags, servers in (([], 1), (["--servers=2"], 2), (["--mode=async", "--pull-encoding=float16"], 1)):
            with self.subTest(flags=flags), tempfile.TemporaryDirectory() as folder:
                said = []
                for _ in range(2):
                    ended = launch(2 + servers, [*SCENARIOS, "shares_all_state", f"--checkpoint-dir={folder}", *flags])
                    self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
                    said.append(set(re.findall("joined ([0-9]+) ended ([0-9]+) batches ([0-9]+)", ended.stdout)))
                    self.assertEqual(len(said[-1]), 1, ended.stdout)
                (joined, _, batches), (joined_again, end, batches_again) = said[0].pop(), said[1].pop()
                self.assertEqual(joined, joined_again)
                steps = 6 if "--mode=async" not in flags else 12
                self.assertEqual([int(batches), int(batches_again)], [steps, 2 * steps])
                code = ("import scenarios, sluice, sys; state = sluice.load_checkpoint(sys.argv[1]); "
                        "model = scenarios.Carrying(); model.repeated = model.repeated.clone(); model.load_state_dict(state); print(scenarios.digest(state))")
                loaded = subprocess.run([PYTHON, "-c", code, folder], env={**ENVIRONMENT, "PYTHONPATH": f"{PACKAGE}:{HERE}"},
                                        capture_output=True, text=True, check=False)
                self.assertEqual(loaded.stdout.strip(), end, loaded.stderr)
                os.remove(os.path.join(folder, "constants.safetensors"))
                ended = launch(2 + servers, [*SCENARIOS, "shares_all_state", f"--checkpoint-dir={folder}", *flags])
                self.assertEqual(ended.returncode, 1, ended.stdout)
                self.assertIn("constants.safetensors is missing: it has the tensors of the model that are not trained",
                              ended.stderr)

    def test_a_frozen_parameter_that_the_program_changes_is_named(self):
        said = self.play("unfreezes", 1)
        self.assertTrue(any(line.startswith("warned 1 1.weight is not trained, and the program changes it") for line in said),
                        said)

    def test_rows_are_used_again_with_a_cache(self):
        for scenario in ("uses_rows_again", "uses_prefetched_rows_again"):
            self.assertIn("seen [0.0, 0.0, -1.0, -1.0]", self.play(scenario, 1, "--mode=async", "--row-cache=1"))

    def test_bags_in_odd_forms_are_those_of_pytorch_or_refused(self):
        self.assertIn("done", self.play("bags_in_odd_forms", 1))

    def test_attachments_go_with_a_push_or_are_refused(self):
        said = self.play("attaches", 1)
        self.assertIn("done", said)
        self.assertIn("server got [('test', b'\\x00bytes')] of worker-0 at step 0", said)

    def test_a_job_that_diverges_ends_with_an_error_of_its_own(self):
        ended = launch(2, [*SCENARIOS, "diverges", "--on-divergence=stop"])
        self.assertEqual(ended.returncode, 7, ended.stdout + ended.stderr)
        self.assertIn("diverged DIVERGED", ended.stdout)

    def test_a_wrong_flag_is_said_once_by_a_launch(self):
        ended = launch(3, [*SCENARIOS, "attaches", "--push-encoding=int9"])
        self.assertEqual(ended.returncode, 2, ended.stdout + ended.stderr)
        self.assertEqual(ended.stderr.count("--push-encoding: "), 1, ended.stderr)
        self.assertNotIn("Traceback", ended.stderr)


class EndingTest(unittest.TestCase):
    """A worker that was started by hand ends without leave()."""

    def play(self, scenario, *flags, **options):
        """Returns the server and the worker."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        address = f"unix:{folder.name}/server"
        server = started([os.path.abspath("server/sluice_server"), f"--listen={address}", "--workers=1", *flags])
        self.addCleanup(ServerElsewhereTest.end, server)
        worker = started([*SCENARIOS, scenario, f"--server={address}", "--name=w"], **options)
        self.addCleanup(ServerElsewhereTest.end, worker)
        return server, worker

    def test_an_exception_and_a_code_are_told_to_the_server_at_once(self):
        for how, code, why in (("by an exception", 1, "ValueError: bad b\u00e4tch"),
                               ("by its code", 4, "its process ended with exit code 4"),
                               ("by the code after an exception", 5, "its process ended with exit code 5"),
                               ("by an exception in a thread", 0, "ValueError: bad b\u00e4tch")):
            with self.subTest(how):
                server, worker = self.play("ends", "--lease=600", ENDS=how)
                self.assertEqual(worker.wait(100), code)
                line = next(line for line in server.stderr if "was lost" in line)
                self.assertRegex(line, rf'at step 1 a worker was lost: "w" \(process {worker.pid} on .*\): {why}\n')

    def test_a_job_of_which_no_worker_ended_well_ends_with_3(self):
        server, _ = self.play("ends", "--lease=1", ENDS="by its code")
        _, errors = server.communicate(timeout=100)
        self.assertEqual(server.returncode, 3, errors)
        self.assertIn("every worker was lost", errors)

    def test_a_program_that_ends_with_0_has_left(self):
        server, worker = self.play("ends", "--lease=600", ENDS="well")
        _, errors = server.communicate(timeout=100)
        self.assertEqual((server.returncode, worker.wait(100)), (0, 0), errors)
        self.assertNotIn("was lost", errors)

    def test_a_program_that_drops_its_optimizer_and_goes_on_has_left(self):
        server, worker = self.play("leaves_late", "--lease=600")
        self.assertEqual(worker.stdout.readline(), "dropped\n")
        _, errors = server.communicate(timeout=100)
        self.assertEqual((server.returncode, worker.poll()), (0, None), errors)


class ServerElsewhereTest(unittest.TestCase):
    def setUp(self):
        self.server = started([os.path.abspath("server/sluice_server"), "--listen=127.0.0.1:0", "--workers=2"])
        self.addCleanup(self.end, self.server)
        for line in self.server.stderr:
            found = re.search(r"listening on (\S+)", line)
            if found:
                self.address = found.group(1)
                break

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()

    def worker(self, scenario, *flags, **environment):
        process = started([*SCENARIOS, scenario, *flags], SLUICE_SERVER=self.address, **environment)
        self.addCleanup(self.end, process)
        return process

    def test_ctrl_c_ends_a_worker_that_waits_for_another(self):
        sleeper = self.worker("interrupted", f"--server={self.address}", "--name=sleeper", NAME="sleeper")
        worker = self.worker("interrupted", f"--server={self.address}", "--name=waiter", NAME="waiter")
        self.assertEqual(sleeper.stdout.readline(), "sleeps\n")
        self.assertEqual(worker.stdout.readline(), "waits\n")
        worker.send_signal(signal.SIGINT)
        said, errors = worker.communicate(timeout=60)
        self.assertEqual(said, "interrupted\n", errors)
        self.assertIn("KeyboardInterrupt", errors)
        self.assertEqual(worker.returncode, -signal.SIGINT, errors)

    def interrupt(self, scenario, **environment):
        """Returns a worker whose step() was interrupted, and one that pushes when it gets a line."""
        other = self.worker("pushes_when_told", f"--server={self.address}", "--name=other", **environment)
        worker = self.worker(scenario, f"--server={self.address}", "--name=worker")
        self.assertEqual(other.stdout.readline(), "joined\n")
        self.assertEqual(worker.stdout.readline(), "waits\n")
        worker.send_signal(signal.SIGINT)
        self.assertEqual(worker.stdout.readline(), "interrupted\n")
        return worker, other

    def test_a_step_that_ctrl_c_has_interrupted_is_waited_for(self):
        worker, other = self.interrupt("interrupted_and_goes_on", DOUBLE="1")
        other.communicate("go on\n" * 2, timeout=60)
        said, errors = worker.communicate(timeout=60)
        self.assertEqual(said, "weight 0.5 step 1\nweight 0.0 step 2\n", errors)

    def test_ctrl_c_at_any_moment_leaves_the_parameters_of_one_step(self):
        ended = launch(2, [*SCENARIOS, "interrupted_at_any_moment"])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertIn("done", ended.stdout.splitlines())

    def test_memory_outlives_a_step_that_ctrl_c_has_interrupted(self):
        worker, other = self.interrupt("interrupted_and_gone")
        other.stdin.write("go on\n")
        other.stdin.flush()
        said, errors = worker.communicate(timeout=60)
        self.assertEqual((said, worker.returncode), ("weight 0.5\n", 0), errors)

    def test_ctrl_c_ends_a_follower_that_waits_for_a_step(self):
        follower = started([PYTHON, "-c", "import torch, sluice, sys\n"
                            "for step in sluice.follow(torch.nn.Linear(3, 2), server=sys.argv[1]):\n"
                            "    print('step', step, flush=True)", self.address])
        self.addCleanup(self.end, follower)
        other = self.worker("pushes_when_told", f"--server={self.address}", "--name=other")
        self.assertEqual(other.stdout.readline(), "joined\n")
        self.assertEqual(follower.stdout.readline(), "step 0\n")
        follower.send_signal(signal.SIGINT)
        said, errors = follower.communicate(timeout=60)
        self.assertEqual((said, follower.returncode), ("", -signal.SIGINT), errors)

    def test_a_follower_that_ctrl_c_has_interrupted_is_freed_when_its_step_is_made(self):
        follower = self.worker("forgets_an_interrupted_follower")
        workers = [self.worker("pushes_when_told", f"--server={self.address}", f"--name={name}") for name in "ab"]
        self.assertEqual(follower.stdout.readline(), "waits\n")
        follower.send_signal(signal.SIGINT)
        self.assertEqual([follower.stdout.readline() for _ in range(2)], ["interrupted\n", "forgotten\n"])
        for worker in workers:
            worker.stdin.write("go on\n")
            worker.stdin.flush()
        said, errors = follower.communicate(timeout=60)
        self.assertEqual((said, follower.returncode), ("freed\n", 0), errors)

    def test_other_threads_run_while_a_worker_waits(self):
        flags = ["waits_let_threads_run", f"--server={self.address}"]
        workers = [self.worker(*flags, "--name=a"), self.worker(*flags, "--name=b")]
        for worker in workers:
            self.assertIsNone(worker.poll())
        # Only the worker with index 0 prints. The other waits for the line until that was seen.
        selector = selectors.DefaultSelector()
        for worker in workers:
            selector.register(worker.stdout, selectors.EVENT_READ)
        (key, _), *_ = selector.select(timeout=60)
        self.assertEqual(key.fileobj.readline(), "another thread runs\n")
        for worker in workers:
            worker.stdin.write("go on\n")
            worker.stdin.flush()
        for worker in workers:
            _, errors = worker.communicate(timeout=60)
            self.assertEqual(worker.returncode, 0, errors)

    def test_a_server_that_is_gone_is_an_error(self):
        for scenario in ("server_dies", "prefetches_of_a_server_that_is_gone"):
            with self.subTest(scenario=scenario):
                self.setUp()
                self.check_gone(scenario)

    def check_gone(self, scenario):
        flags = [scenario, f"--server={self.address}", "--connect-timeout=3"]
        workers = [self.worker(*flags, "--name=a"), self.worker(*flags, "--name=b")]
        for worker in workers:
            self.assertEqual(worker.stdout.readline(), "joined\n")
        self.server.kill()
        self.server.wait()
        for worker in workers:
            said, errors = worker.communicate("go on\n", timeout=60)
            self.assertEqual((said, worker.returncode), ("gone\n", 0), errors)


class PrefetchTest(unittest.TestCase):
    def test_a_forward_with_the_same_ids_uses_the_rows_and_no_other_does(self):
        for mode in ("sync", "async"):
            with self.subTest(mode=mode):
                server = started([os.path.abspath("server/sluice_server"), "--listen=127.0.0.1:0", "--workers=1",
                                  "--metrics=127.0.0.1:0", f"--mode={mode}"])
                self.addCleanup(ServerElsewhereTest.end, server)
                found = {}
                for line in server.stderr:
                    found.update(re.findall(r"(listening on|metrics at) (\S+)", line))
                    if len(found) == 2:
                        break
                worker = started([*SCENARIOS, "prefetches", f"--server={found['listening on']}"],
                                 METRICS=found["metrics at"])
                self.addCleanup(ServerElsewhereTest.end, worker)
                said, errors = worker.communicate(timeout=60)
                self.assertEqual(worker.returncode, 0, errors)
                # One by the forward before the step, and one or two by the prefetch and the forward after it: the server
                # may answer the prefetch after the step.
                lines = re.sub(r"^(after a step .*) [89]$", r"\1", said, flags=re.M).splitlines()
                self.assertEqual(lines, [
                    "pulled 2", "used [[[-0.5]], [[-0.5]]] 4", "used once [[-0.5], [-0.5]] 6",
                    "after a step [[-1.5]]", "after a refused step [[-1.5]]", "given up [[-1.5]]"])


class FollowTest(unittest.TestCase):
    def test_the_example_evaluates_the_model_until_its_training_ends(self):
        with tempfile.TemporaryDirectory() as folder:
            address = f"unix:{folder}/server"
            worker = [*IMAGES, f"--sluice-server={address}", "--max-steps=200"]
            processes = []

            def start(words):
                processes.append(started(words))
                self.addCleanup(ServerElsewhereTest.end, processes[-1])
                return processes[-1]

            start([os.path.abspath("server/sluice_server"), f"--listen={address}", "--workers=2"])
            evaluator = start([PYTHON, os.path.join(PACKAGE, "examples", "evaluate.py"), f"--server={address}"])
            start(worker)
            first = evaluator.stdout.readline()  # no step is made before the second worker is there
            start(worker)
            said = [process.communicate(timeout=100) for process in processes]
            self.assertEqual([process.returncode for process in processes], [0] * 4, said)
            accuracy = re.search(r"test accuracy ([0-9.]+)", said[2][0]).group(1)
            evaluations = (first + said[1][0]).splitlines()
            self.assertTrue(evaluations[0].startswith("step 0, "), evaluations)
            self.assertEqual(evaluations[-1], f"step 200, test accuracy {accuracy}")
            steps = [int(line.split()[1].rstrip(",")) for line in evaluations]
            self.assertEqual(steps, sorted(set(steps)))

    def test_a_server_that_is_not_there_is_an_error(self):
        ended = subprocess.run([PYTHON, "-c", "import torch, sluice\nnext(sluice.follow(torch.nn.Linear(3, 2), "
                                "server='127.0.0.1:1', connect_timeout=0))"],
                               env=ENVIRONMENT, capture_output=True, text=True, check=False)
        self.assertIn("sluice.errors.ServerGoneError", ended.stderr)
        self.assertIn("127.0.0.1:1", ended.stderr)


class SamplerTest(unittest.TestCase):
    def test_a_process_in_anothers_place_begins_after_its_batches(self):
        program = ("import types, sluice\n"
                   "place = types.SimpleNamespace(index=0, workers=1, batches_before=7, earlier_launches=[])\n"
                   "def epochs_of(sets):\n"
                   "    sampler = sluice.DistributedSampler(20, 4, place)\n"
                   "    for epoch in range(3):\n"
                   "        if sets: sampler.set_epoch(epoch)\n"
                   "        assert len(sampler) == 5\n"
                   "        yield [list(batch) for batch in sampler]\n"
                   "epochs = list(epochs_of(False))\n"
                   "print([len(batches) for batches in epochs], epochs == list(epochs_of(True)))\n")
        ended = subprocess.run([PYTHON, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=False)
        self.assertEqual(ended.stdout, "[0, 3, 5] True\n", ended.stderr)
        self.assertEqual(ended.stderr.count("sluice: this job has trained 1 epoch before."), 2, ended.stderr)

    def test_only_batches_of_batches_are_an_error(self):
        program = ("import types, sluice, torch\n"
                   "place = types.SimpleNamespace(index=0, workers=2, batches_before=0, earlier_launches=[])\n"
                   "def sampler(): return sluice.DistributedSampler(24, 4, place)\n"
                   "class Own(torch.utils.data.IterableDataset):\n"
                   "    def __iter__(self): return (data[rows] for rows in sampler())\n"
                   "class Passes(torch.utils.data.BatchSampler):\n"
                   "    def __iter__(self): return iter(self.sampler)\n"
                   "class Same(torch.utils.data.BatchSampler): pass\n"
                   "data = torch.arange(48).view(24, 2)\n"
                   "part = torch.utils.data.Subset(torch.utils.data.TensorDataset(data), range(23, -1, -1))\n"
                   "for words in ({'dataset': data, 'batch_sampler': sampler()},\n"
                   "              {'dataset': data, 'batch_sampler': sampler(), 'num_workers': 2},\n"
                   "              {'dataset': data, 'batch_sampler': Passes(sampler(), 4, True)},\n"
                   "              {'dataset': data, 'sampler': sampler(), 'batch_size': None},\n"
                   "              {'dataset': part, 'batch_sampler': sampler()},\n"
                   "              {'dataset': Own(), 'batch_size': None},\n"
                   "              {'dataset': data, 'sampler': sampler(), 'batch_size': 16},\n"
                   "              {'dataset': data, 'sampler': sampler()},\n"
                   "              {'dataset': data, 'sampler': sampler(), 'batch_size': 2, 'drop_last': True, 'num_workers': 1},\n"
                   "              {'dataset': data, 'batch_sampler': Same(sampler(), 2, False)}):\n"
                   "    try:\n"
                   "        batches = list(torch.utils.data.DataLoader(**words))\n"
                   "        print(*[list((batch if torch.is_tensor(batch) else batch[0]).shape) for batch in batches])\n"
                   "    except ValueError as error:\n"
                   "        print(error)\n")
        ended = subprocess.run([PYTHON, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=False)
        said = ended.stdout.splitlines()
        self.assertEqual(said[:6], ["[4, 2] [4, 2] [4, 2]"] * 6, ended.stdout + ended.stderr)
        self.assertEqual(len(said), 10, ended.stdout + ended.stderr)
        for line in said[6:]:
            self.assertIn("got a sluice.DistributedSampler, whose items are batches", line)
            self.assertIn("give it as batch_sampler=, without batch_size=", line)

    def test_another_number_of_workers_takes_what_is_left(self):
        program = ("import collections, itertools, types, sluice\n"
                   "def rows_of(size, batch, counts, workers, epochs):\n"
                   "    rows = []\n"
                   "    for index in range(workers):\n"
                   "        place = types.SimpleNamespace(index=index, workers=workers, batches_before=0,\n"
                   "                                      earlier_launches=counts)\n"
                   "        sampler = sluice.DistributedSampler(size, batch, place)\n"
                   "        rows.append([])\n"
                   "        for epoch in range(epochs):\n"
                   "            sampler.set_epoch(epoch)\n"
                   "            assert len(sampler) == size // batch // workers\n"
                   "            rows[-1] += [[(epoch, row) for row in batch] for batch in sampler]\n"
                   "    return rows\n"
                   "for counts in [[7, 7]], [[7, 7], [1, 1, 1, 1]], [[12, 12]], [[3, 9], [5]]:\n"
                   "    taken = collections.Counter()\n"
                   "    for number, launch in enumerate(counts):\n"
                   "        dealt = rows_of(96, 4, counts[:number], len(launch), 2)\n"
                   "        for batches, count in zip(dealt, launch):\n"
                   "            taken.update(itertools.chain(*batches[:count]))\n"
                   "    for batches in rows_of(96, 4, counts, 4, 2):\n"
                   "        taken.update(itertools.chain(*batches))\n"
                   "    print(len(taken), set(taken.values()))\n")
        ended = subprocess.run([PYTHON, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=False)
        self.assertEqual(ended.stdout, "192 {1}\n" * 4, ended.stderr)


class ResumeTest(unittest.TestCase):
    """A job of 24 batches in an epoch that is started again: its parameters are how often each row was used."""

    def begin(self, workers, epochs, **variables):
        """Returns the server and the workers, which were started by hand."""
        address = f"unix:{self.folder}/server"
        words = [os.path.abspath("server/sluice_server"), f"--listen={address}", f"--workers={workers}", "--reduction=sum",
                 f"--checkpoint-dir={self.folder}/kept", "--durability=journal"]
        processes = [started(words)]
        processes += [started([*SCENARIOS, "counts_rows", f"--server={address}", f"--name=w{place}"], EPOCHS=str(epochs),
                              **variables) for place in range(workers)]
        for process in processes:
            self.addCleanup(ServerElsewhereTest.end, process)
        # A server that goes on does not wait for more workers than it knows: they would share the rest without those.
        for process in processes[1:]:
            self.assertEqual(process.stdout.readline(), "joined\n")
        for process in processes[1:]:
            process.stdin.write("\n")
            process.stdin.flush()
        return processes

    def finish(self, workers, epochs, **variables):
        """Returns the steps of all workers together, how often each row was used, and what was said on stderr."""
        said = [process.communicate(timeout=100) for process in self.begin(workers, epochs, **variables)]
        errors = "".join(errors for _, errors in said)
        found = [re.fullmatch(r"steps ([0-9]+) used (.*)\n", line) for line, _ in said[1:]]
        self.assertTrue(all(found), f"{said}")
        used = {line.group(2) for line in found}
        self.assertEqual(len(used), 1, said)
        return sum(int(line.group(1)) for line in found), used.pop(), errors

    def test_each_row_is_used_once_in_an_epoch_after_a_kill_and_after_the_end(self):
        for workers, stop, later, variables in ((2, 14, 2, {}), (2, 5, 3, {"SETS_EPOCH": "1"}), (2, 12, 3, {})):
            with self.subTest(stop=stop, later=later), tempfile.TemporaryDirectory() as self.folder:
                killed = self.begin(workers, 2, STOP=str(stop), **variables)
                for process in killed[1:]:
                    self.assertEqual(process.stdout.readline(), "waits\n")
                for process in killed:
                    process.kill()
                    process.wait()
                begun = workers * stop // 24
                steps, used, errors = self.finish(later, 2, **variables)
                self.assertEqual((steps, used), (48 - workers * stop, "[2.0]"), errors)
                self.assertEqual(errors.count("sluice: this job has trained 1 epoch before."), begun, errors)
                steps, used, errors = self.finish(later, 2, **variables)
                self.assertEqual((steps, used), (0, "[2.0]"), errors)
                self.assertIn("sluice: this job has trained 2 epochs before. The loop skips them", errors)
                steps, used, errors = self.finish(later, 3, **variables)
                self.assertEqual((steps, used), (24, "[3.0]"), errors)


class CheckpointTest(unittest.TestCase):
    # Answers each line, a checkpoint and perhaps tables in it, and ends with an empty line.
    READER = """
import sys, zlib, sluice
for line in sys.stdin:
    where, *tables = line.split()
    try:
        for table in tables:
            ids, rows = sluice.load_table(where, table)
            print(table, ids.tolist(), rows.tolist())
        if not tables:
            tensors = sluice.load_checkpoint(where)
            print(list(tensors), [list(t.shape) for t in tensors.values()])
            data = b''.join(bytes(t.contiguous().view(-1).numpy()) for t in tensors.values())
            print(format(zlib.crc32(data), '08x'))
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
    print(flush=True)
"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.reader = started([PYTHON, "-c", self.READER])
        self.addCleanup(ServerElsewhereTest.end, self.reader)

    def read(self, *words):
        self.reader.stdin.write(" ".join(words) + "\n")
        self.reader.stdin.flush()
        return list(itertools.takewhile(str.strip, self.reader.stdout))

    def refusal(self, *words):
        return "".join(self.read(*words))

    def test_a_checkpoint_of_any_number_of_servers_is_read_as_the_model_was(self):
        for servers in (1, 2, 3):
            folder = f"{self.folder}/{servers}"
            ended = launch(1 + servers, [*IMAGES, "--max-steps=3", f"--sluice-servers={servers}",
                                         f"--sluice-checkpoint-dir={folder}"])
            self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
            for where in (folder, f"{folder}/checkpoint-000001-000000000003.safetensors"):
                names, crc = self.read(where)
                self.assertIn("['conv1.weight', 'conv1.bias', 'conv2.weight'", names)
                self.assertEqual(crc, crc_of(ended) + "\n")

    def test_what_is_wrong_with_a_checkpoint_is_said(self):
        folder = f"{self.folder}/run"
        ended = launch(3, [*IMAGES, "--max-steps=3", "--sluice-servers=2", f"--sluice-checkpoint-dir={folder}"])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        os.mkdir(f"{self.folder}/empty")
        self.assertRegex(self.refusal(f"{self.folder}/empty"), "^FileNotFoundError: .*empty has no checkpoint")
        self.assertRegex(self.refusal(f"{self.folder}/nowhere"), "^FileNotFoundError: .*nowhere")
        self.assertRegex(self.refusal(__file__), f"^ValueError: {re.escape(__file__)}: ")
        stripe = f"{folder}/stripe-000001-000000000003-1-of-2.safetensors"
        self.assertRegex(self.refusal(stripe), "^ValueError: .*1-of-2.safetensors has one server's part of a checkpoint")
        with open(stripe, "r+b") as file:
            file.seek(-20, os.SEEK_END)
            file.write(b"?")
        self.assertRegex(self.refusal(folder), "^ValueError: .*1-of-2.safetensors: its checksum does not match")
        os.remove(stripe)
        self.assertRegex(self.refusal(folder), "^ValueError: .*1-of-2.safetensors is missing: it is the part of server 1 of 2")

    def test_the_rows_of_tables_are_those_that_the_workers_had(self):
        for servers in (1, 3):
            folder = f"{self.folder}/{servers}"
            ended = launch(2 + servers, [*SCENARIOS, "trains_embeddings", f"--servers={servers}", f"--checkpoint-dir={folder}"])
            self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
            read = self.read(folder, "items", "tags")
            self.assertEqual(len(read), 2, read)
            everything = str(list(range(8)))
            for line in read:
                table, rows = line.rstrip("\n").split(" ", 1)
                self.assertEqual(rows[:len(everything)], everything)
                self.assertIn(f"{table}{rows[len(everything):]}", ended.stdout.splitlines())
            self.assertRegex(self.refusal(folder, "item"),
                             "^ValueError: .*has no table \"item\"; its tables are: items, tags")


class ExamplesTest(unittest.TestCase):
    def losses(self, ranks, program, *flags):
        ended = launch(ranks, [PYTHON, program, *flags])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return [float(loss) for loss in re.findall(r"loss ([0-9.]+)", ended.stdout)]

    def test_the_diff_turns_a_program_of_ddp_into_one_of_sluice(self):
        examples = os.path.join(PACKAGE, "examples")
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "ddp.py")
            shutil.copy(os.path.join(examples, "ddp.py"), program)
            self.assertEqual(len(self.losses(3, program)), 15)
            with open(os.path.join(examples, "from_ddp.diff"), encoding="utf-8") as patch:
                subprocess.run(["git", "apply", "-"], cwd=folder, stdin=patch, check=True)
            losses = self.losses(4, program)
            self.assertEqual(len(losses), 15)
            self.assertLess(max(losses[-3:]), 0.1)  # from about 30

    def test_a_transformer_learns_a_text_with_adam(self):
        losses = self.losses(3, os.path.join(PACKAGE, "examples", "text.py"), "--max-steps=100")
        self.assertEqual(len(losses), 2)
        self.assertLess(losses[-1], 2.9)  # from 4.5


class TypesTest(unittest.TestCase):
    def test_the_package_and_a_users_program_have_types(self):
        program = os.path.join(HERE, "typed_program.py")
        with tempfile.TemporaryDirectory() as folder:
            wrong = os.path.join(folder, "wrong.py")
            with open(program, encoding="utf-8") as file, open(wrong, "w", encoding="utf-8") as copy:
                copy.write(file.read().replace("len(rows), loss=loss)", "'many', loss=loss)"))
            sources = [os.path.join(PACKAGE, "sluice", name) for name in os.listdir(os.path.join(PACKAGE, "sluice"))
                       if name.endswith(".py")]
            # Without the parts of torch that nobody uses here, mypy takes a fifth of the time.
            settings = os.path.join(folder, "settings.ini")
            with open(settings, "w", encoding="utf-8") as file:
                file.write("[mypy]\n[mypy-sympy.*,torch._refs.*,torch.ao.*,torch.distributions.*,torch.fx.*,torch.jit.*,"
                           "torch.onnx.*]\nfollow_imports = skip\n")
            checked = subprocess.run(["mypy", "--strict", "--disallow-any-unimported", f"--config-file={settings}",
                                      f"--cache-dir={folder}", f"--python-executable={PYTHON}", *sources, program, wrong],
                                     env={**ENVIRONMENT, "MYPYPATH": PACKAGE}, capture_output=True, text=True, check=False)
            errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
            self.assertEqual(len(errors), 1, checked.stdout + checked.stderr)
            self.assertIn("wrong.py:20: error: ", errors[0])
            self.assertIn('incompatible type "str"; expected "int"', errors[0])


class LocaleTest(unittest.TestCase):
    PROGRAM = ("import locale, sys, sluice\n"
               "locale.setlocale(locale.LC_ALL, 'de_DE.UTF-8')\n"
               "assert locale.str(0.5) == '0,5'\n"
               "sluice.start(server='127.0.0.1:1', connect_timeout=sys.argv.pop() if sys.argv[1:] else 0.5)\n"
               "print('started', locale.str(0.5))\n")

    def test_numbers_of_flags_have_a_point_in_any_locale(self):
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", f"{folder}/de_DE.UTF-8"], check=False)
            if made.returncode != 0:
                self.skipTest("the package locales is missing, which knows de_DE")
            for words, expected in (([], "started 0,5\n"), (["0.25"], "started 0,5\n"), (["0,25"], "")):
                ended = subprocess.run([PYTHON, "-c", self.PROGRAM, *words], env={**ENVIRONMENT, "LOCPATH": folder},
                                       capture_output=True, text=True, check=False)
                self.assertEqual(ended.stdout, expected, ended.stderr)
            self.assertIn("--sluice-connect-timeout: expected a number from 0 to 1e+09, found 0,25", ended.stderr)


class ImportTest(unittest.TestCase):
    def test_the_code_of_the_messages_may_lie_elsewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(f"{folder}/sluice/v1")
            with open(f"{folder}/sluice/v1/inspector_pb2.py", "w", encoding="ascii") as file:
                file.write("LIBRARY = 'sluice._library' in __import__('sys').modules")
            for order in (f"{folder}:{PACKAGE}", f"{PACKAGE}:{folder}"):
                ended = subprocess.run([PYTHON, "-c", "from sluice.v1 import inspector_pb2; import sluice\n"
                                        "print(inspector_pb2.LIBRARY, sluice.start.__name__)"],
                                       env={**ENVIRONMENT, "PYTHONPATH": order}, capture_output=True, text=True, check=False)
                self.assertEqual(ended.stdout, "False start\n", ended.stderr)

    def test_a_library_that_is_missing_is_named(self):
        ended = subprocess.run([PYTHON, "-c", "import sluice; sluice.start"],
                               env={**ENVIRONMENT, "SLUICE_LIBRARY": "/nowhere.so"}, capture_output=True, text=True, check=False)
        self.assertIn("sluice cannot load its library /nowhere.so", ended.stderr)

    def test_says_its_version_and_what_it_has(self):
        ended = subprocess.run([PYTHON, "-c", "import sluice; print(sluice.__version__, *dir(sluice))"],
                               env=ENVIRONMENT, capture_output=True, text=True, check=False)
        version, *names = ended.stdout.split()
        program = subprocess.run([os.path.join("server", "sluice_server"), "--version"], capture_output=True, text=True, check=True)
        self.assertEqual(program.stdout.split("\n")[0], f"sluice_server (Sluice) {version}")
        self.assertLess({"start", "DistributedOptimizer", "DistributedSampler", "RemoteEmbedding", "follow"}, set(names))

    def test_a_process_that_serves_needs_no_torch(self):
        ended = subprocess.run([PYTHON, "-c", "import sys, sluice; sluice.start; print('torch' in sys.modules)"],
                               env=ENVIRONMENT, capture_output=True, text=True, check=False)
        self.assertEqual(ended.stdout, "False\n", ended.stderr)


if __name__ == "__main__":
    recorded_tests.main()
