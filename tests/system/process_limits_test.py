#!/usr/bin/env python3
"""A server that the system tells to end, whose launcher dies, or whose memory or files are limited (ulimit).

Usage: process_limits_test.py SLUICE_SERVER PUSHING_WORKER_PROGRAM [TEST...]
"""

import glob
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PATIENCE = 120  # seconds; only a test that hangs needs them
SERVER, WORKER = "", ""
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none"]
# As tests/testing/process/mpi_environment.h says.
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Program:
    """A program in a session of its own, which ends with it."""

    def __init__(self, *words, prepare=None):
        self.log = tempfile.TemporaryFile()  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True,
            preexec_fn=prepare, env={**os.environ, **MPI})

    def output(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(errors="replace")

    def await_output(self, pattern):
        return until(lambda: re.search(pattern, self.output()), lambda: f"no {pattern} in:\n{self.output()}")

    def wait(self):
        return self.process.wait(PATIENCE)

    def stop(self):
        for pid in session(self.process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        self.log.close()


def session(leader):
    """The processes of a session that have not ended."""
    running = subprocess.run(["ps", "-s", str(leader), "-o", "pid=,stat="], stdout=subprocess.PIPE, check=False)
    lines = [line.split() for line in running.stdout.decode().splitlines()]
    return [int(pid) for pid, state in lines if not state.startswith("Z")]


def until(look, explain):
    end = time.monotonic() + PATIENCE
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(explain())
        time.sleep(0.02)


def newest_step(folder):
    names = glob.glob(os.path.join(folder, "checkpoint-*.safetensors"))
    return max((int(re.search(r"-(\d+)\.s", name).group(1)) for name in names), default=-1)


class ProcessTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder], check=True)

    def start(self, *words, **options):
        program = Program(*words, **options)
        self.addCleanup(program.stop)
        return program

    def serve(self, *flags, **options):
        server = self.start(SERVER, "--listen=127.0.0.1:0", "--workers=1", *flags, **options)
        server.address = server.await_output(r"listening on ([^ ,\n]+)").group(1)
        return server

    def work(self, server, *flags):
        return self.start(WORKER, f"--server={server.address}", "--gradient=1", *flags)

    def await_step(self, step):
        until(lambda: newest_step(self.folder) >= step, lambda: f"the newest step is {newest_step(self.folder)}")


class StopSignals(ProcessTest):
    def train(self, **options):
        server = self.serve(f"--checkpoint-dir={self.folder}", "--checkpoint-every=5", **options)
        self.work(server, "--steps=1000000", "--elements=64", "--batch-time=0.01")
        self.await_step(5)
        return server

    def expect_saved(self, server, name):
        self.assertEqual(server.wait(), 0, server.output())
        self.assertIn(f"draining after {name}", server.output())
        steps = int(re.search(r"steps +(\d+)", server.output()).group(1))
        self.assertEqual(newest_step(self.folder), steps)

    def test_a_closed_terminal_ends_a_server_as_sigterm_does(self):
        server = self.train()
        server.process.send_signal(signal.SIGHUP)
        self.expect_saved(server, "Hangup")

    def test_but_not_under_nohup(self):
        server = self.train(prepare=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        server.process.send_signal(signal.SIGHUP)
        self.await_step(newest_step(self.folder) + 10)
        server.process.send_signal(signal.SIGTERM)
        self.expect_saved(server, "Terminated")

    def test_a_server_whose_log_nobody_reads_any_more_goes_on_and_saves(self):
        reading, writing = os.pipe()
        socket = f"unix:{self.folder}/socket"
        server = self.start(SERVER, f"--listen={socket}", "--workers=1", f"--checkpoint-dir={self.folder}",
                            "--checkpoint-every=5", prepare=lambda: [os.dup2(writing, end) for end in (1, 2)])
        os.close(reading)
        os.close(writing)
        server.address = socket
        self.work(server, "--steps=1000000", "--elements=64", "--batch-time=0.01")
        self.await_step(10)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)
        self.assertGreater(newest_step(self.folder), 9)

    def test_the_second_server_ends_the_same_way(self):
        sockets = [f"unix:{self.folder}/{name}" for name in "ab"]
        servers = [self.start(SERVER, f"--servers={','.join(sockets)}", f"--index={index}", "--workers=1") for index in (0, 1)]
        for server in servers:
            server.await_output("listening on")
        servers[1].await_output("follows the first server")
        servers[1].process.send_signal(signal.SIGHUP)
        servers[1].await_output("ends after Hangup, when the first server ends the job")
        servers[0].process.send_signal(signal.SIGHUP)
        self.assertEqual(servers[0].wait(), 0, servers[0].output())

class Launches(ProcessTest):
    def launch(self, *parts):
        words = []
        for count, *program in parts:
            words += ([":"] if words else []) + ["-n", str(count), *program]
        return self.start(*MPIRUN, *words)

    def expect_ends_with_mpirun(self, *flags):
        job = self.launch([1, SERVER, f"--checkpoint-dir={self.folder}", *flags],
                          [2, WORKER, "--steps=1000000", "--gradient=1", "--elements=64", "--batch-time=0.01", *flags])
        self.await_step(0)
        reached = os.path.join(self.folder, "reached")  # 8 bytes for each step
        until(lambda: os.path.getsize(reached) > 80, lambda: job.output())
        job.process.kill()
        until(lambda: not session(job.process.pid), lambda: f"these train on: {session(job.process.pid)}")
        self.assertGreater(newest_step(self.folder), 5)  # without a last checkpoint there is that of step 0

    def test_ranks_end_and_save_when_mpirun_is_killed(self):
        self.expect_ends_with_mpirun()

    def test_supervised_ranks_do_too(self):
        self.expect_ends_with_mpirun("--max-restarts=3")

    def test_a_server_ends_whose_other_ranks_end_without_a_job(self):
        job = self.launch([1, SERVER], [2, WORKER, "--no-join", "--steps=1", "--gradient=1"])
        self.assertEqual(job.wait(), 3, job.output())
        self.assertIn("all other ranks of the launch have ended, and none has joined", job.output())

    def test_a_server_ends_whose_other_ranks_end_before_the_launch(self):
        alone = 'until [ "$(cat /proc/$PPID/task/*/children | wc -w)" = 1 ]; do :; done; exec "$0"'
        job = self.launch([1, "sh", "-c", alone, SERVER], [2, "true"])
        self.assertNotEqual(job.wait(), 0)
        self.assertIn("all other ranks of the launch have ended before they took part", job.output())

    def test_no_rank_ends_that_waits_for_a_late_one(self):
        late = 'sleep 12; exec "$0" --steps=3 --gradient=1'  # longer than a rank may be alone
        job = self.launch([1, SERVER], [1, "sh", "-c", late, WORKER])
        self.assertEqual(job.wait(), 0, job.output())


class Limits(ProcessTest):
    def expect_too_large(self, kind):
        server = self.serve(prepare=lambda: resource.setrlimit(kind, (500 << 20, 500 << 20)))
        large = self.work(server, "--steps=1", f"--elements={64 << 20}")
        self.assertNotEqual(large.wait(), 0)
        self.assertRegex(large.output(), r"has 67108864 elements, more than the \d+ that this server has memory for")
        small = self.work(server, "--steps=2", "--elements=1024")
        self.assertEqual(small.wait(), 0, small.output())
        self.assertEqual(server.wait(), 0, server.output())

    @unittest.skipIf("SLUICE_SANITIZED" in os.environ, "sanitizers take address space of their own")
    def test_a_limit_of_address_space_refuses_a_model(self):
        self.expect_too_large(resource.RLIMIT_AS)

    @unittest.skipIf("SLUICE_SANITIZED" in os.environ, "sanitizers take memory of their own")
    def test_a_limit_of_data_refuses_a_model(self):
        self.expect_too_large(resource.RLIMIT_DATA)

    def test_a_limit_of_files_is_a_full_disk(self):
        server = self.serve(f"--checkpoint-dir={self.folder}", "--durability=journal", "--checkpoint-every=1000000",
                            prepare=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, -1)))
        worker = self.work(server, "--steps=200", "--elements=1024")
        server.await_output("File too large; it takes pushes again when")
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (-1, -1))
        self.assertEqual(worker.wait(), 0, worker.output())
        self.assertEqual(server.wait(), 0, server.output())
        self.assertIn("parameters at step 200: -200 to -200", worker.output())


if __name__ == "__main__":
    SERVER, WORKER = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
