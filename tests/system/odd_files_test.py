#!/usr/bin/env python3
"""Each program is given something else in place of each file that it reads: it says so, and ends.

Usage: odd_files_test.py SLUICE_SERVER SLUICE_TRAIN SLUICE_EVALUATE SLUICECTL SLUICE_DOCTOR [TEST...]
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

PATIENCE = 120  # seconds; only a program that hangs needs them
SERVER, TRAIN, EVALUATE, CTL, DOCTOR = "", "", "", "", ""
LISTEN = ["--listen=127.0.0.1:0", "--workers=1"]


class OddFiles(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.pipe = self.path("pipe")
        os.mkfifo(self.pipe, 0o600)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_to_end(self, words):
        ended = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               timeout=PATIENCE, check=False)
        return ended.returncode, ended.stdout.decode(errors="replace")

    def expect_refused(self, words, path, kind="a named pipe"):
        code, output = self.run_to_end(words)
        self.assertNotEqual(code, 0, output)
        self.assertGreater(code, 0, f"{words} was ended by a signal: {output}")
        self.assertIn(f"{path} is {kind}, expected a regular file", output)

    def test_flags_that_name_a_file(self):
        tls = [f"--tls-cert={self.pipe}", f"--tls-key={self.pipe}", f"--tls-ca={self.pipe}"]
        worker = [TRAIN, "--server=127.0.0.1:1", "--max-steps=1"]
        for words in ([SERVER, *LISTEN, f"--token-file={self.pipe}"], [SERVER, *LISTEN, *tls],
                      [SERVER, *LISTEN, f"--config={self.pipe}"], [*worker, f"--token-file={self.pipe}"],
                      [*worker, *tls], [*worker, f"--config={self.pipe}"], [TRAIN, f"--init-from={self.pipe}", *worker[1:]],
                      [CTL, "--server=127.0.0.1:1", f"--token-file={self.pipe}", "status"],
                      [CTL, "--server=127.0.0.1:1", *tls, "status"], [CTL, "checkpoint", "verify", self.pipe],
                      [CTL, "checkpoint", "export", self.pipe, self.path("out")], [CTL, "checkpoint", "show", self.pipe],
                      [EVALUATE, f"--checkpoint={self.pipe}"], [DOCTOR, *tls]):
            with self.subTest(words=words):
                self.expect_refused(words, self.pipe)

    def test_other_kinds_of_files(self):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(self.path("socket"))
        for path, kind in ((self.folder, "a directory"), ("/dev/zero", "a device"), (self.path("socket"), "a socket")):
            for words in ([SERVER, *LISTEN, f"--token-file={path}"], [SERVER, *LISTEN, f"--config={path}"]):
                with self.subTest(words=words):
                    self.expect_refused(words, path, kind)

    def test_a_model(self):
        model = self.path("model.pt")
        os.mkfifo(model)
        self.expect_refused([TRAIN, "--role=single", f"--model={model}", "--max-steps=1"], model)

    def test_a_context_of_sluicectl(self):
        os.environ["SLUICE_CONTEXTS"] = self.pipe
        self.addCleanup(os.environ.pop, "SLUICE_CONTEXTS")
        self.expect_refused([CTL, "status"], self.pipe)

    def test_data(self):
        idx = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]
        cifar = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
        for names, dataset in ((idx, "mnist"), ([name + ".gz" for name in idx], "mnist"), (cifar, "cifar10"),
                               (["train.libsvm", "test.libsvm"], "libsvm")):
            with self.subTest(names=names):
                folder = tempfile.mkdtemp(dir=self.folder)
                for name in names:
                    os.mkfifo(os.path.join(folder, name))
                code, output = self.run_to_end([TRAIN, "--role=single", "--model=logistic", f"--dataset={dataset}",
                                                "--max-steps=1", f"--data-dir={folder}"])
                self.assertGreater(code, 0, output)
                self.assertRegex(output, folder + r"/\S+ is a named pipe, expected a regular file")

    # The newest checkpoint, the lock, and what a server is about to write.
    def test_files_of_a_servers_directory(self):
        for name in ("checkpoint-000001-000000000007.safetensors", "LOCK", "journal-000001-000000000000",
                     "life-000001-000000000000", "reached", "page-history"):
            with self.subTest(name=name):
                folder = tempfile.mkdtemp(dir=self.folder)
                os.mkfifo(os.path.join(folder, name), 0o600)
                server = subprocess.Popen([SERVER, *LISTEN, f"--checkpoint-dir={folder}", "--durability=journal",
                                           "--page=127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                self.addCleanup(server.stdout.close)
                self.addCleanup(server.kill)
                lines = []
                for line in server.stdout:  # ends when the server does
                    lines.append(line.decode())
                    if re.search("the first step waits for", lines[-1]):
                        server.send_signal(signal.SIGTERM)
                self.assertIn(server.wait(PATIENCE), (0, 1, 5), "".join(lines))


if __name__ == "__main__":
    SERVER, TRAIN, EVALUATE, CTL, DOCTOR = sys.argv[1:6]
    unittest.main(argv=sys.argv[:1] + sys.argv[6:], verbosity=2)
