#!/usr/bin/env python3
"""sluice_doctor finds what is really wrong."""

import os
import resource
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "testing"))
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402

DOCTOR = "tools/doctor/sluice_doctor"


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def examine(*flags, **environment):
    """The exit code, and the verdict and text of each subject."""
    limit = few_files if environment.pop("few_files", False) else None
    ended = subprocess.run([DOCTOR, *flags], capture_output=True, text=True, check=False, preexec_fn=limit,
                           env={**os.environ, **environment})
    found = {}
    for line in ended.stdout.splitlines():
        verdict, rest = line.split(maxsplit=1)
        subject, text = rest.split(": ", maxsplit=1)
        found[subject] = (verdict, text)
    return ended.returncode, found


class DoctorTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, name, text, mode):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, mode)
        return path

    def test_a_sound_machine_is_told_so_and_nothing_is_left(self):
        code, found = examine(f"--checkpoint-dir={self.folder}", "--listen=127.0.0.1:0", "--workers=1",
                              "--token-file=" + self.file("token", "secret\n", 0o600), XDG_RUNTIME_DIR=self.folder)
        self.assertEqual(code, 0)
        for subject in ("memory", "descriptors", "shared memory", "unix socket", "clock", "checkpoints", "listen", "token"):
            self.assertEqual(found[subject][0], "ok", subject)
        self.assertEqual(os.listdir(self.folder), ["token"])

    def test_too_few_files_are_counted(self):
        code, found = examine("--workers=50", few_files=True)
        self.assertEqual((code, found["descriptors"][0]), (1, "wrong"))
        self.assertIn("may open 64 files, expected 1056 for 50 workers", found["descriptors"][1])

    def test_a_model_that_no_memory_holds_is_wrong(self):
        code, found = examine("--model-size=1e9", "--workers=2")
        self.assertEqual((code, found["memory"][0]), (1, "wrong"))
        self.assertIn("takes some 5000000000 MB", found["memory"][1])

    def test_a_port_that_is_taken_is_named(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            code, found = examine(f"--listen={address}")
            self.assertEqual((code, found["listen"][0]), (1, "wrong"))
            self.assertIn(f"{address}: Address already in use", found["listen"][1])

    def test_a_port_where_another_program_listens_is_no_server(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            address = f"127.0.0.1:{other.getsockname()[1]}"
            code, found = examine(f"--server={address}")
            self.assertEqual((code, found["server"][0]), (1, "wrong"))
            self.assertIn(f"no server of Sluice answers at {address}", found["server"][1])

    def test_a_server_that_is_not_there_is_named(self):
        code, found = examine(f"--server=unix:{self.folder}/none.sock")
        self.assertEqual((code, found["server"][0]), (1, "wrong"))
        self.assertIn("No such file", found["server"][1])

    def test_a_token_that_others_can_read_is_wrong(self):
        code, found = examine("--token-file=" + self.file("token", "secret\n", 0o644))
        self.assertEqual((code, found["token"][0]), (1, "wrong"))
        self.assertIn("chmod 600", found["token"][1])

    def test_a_file_that_is_no_certificate_is_named(self):
        bad = self.file("bad.pem", "bad", 0o600)
        code, found = examine(*(f"--tls-{part}={bad}" for part in ("cert", "key", "ca")))
        self.assertEqual((code, found["certificate"][0]), (1, "wrong"))
        self.assertIn(bad, found["certificate"][1])
        self.assertIn("some of --tls-cert, --tls-key and --tls-ca are missing",
                      examine(f"--tls-cert={bad}")[1]["certificate"][1])

    def test_a_directory_that_the_server_would_make_is_right_and_one_that_it_cannot_is_wrong(self):
        self.assertEqual(examine(f"--checkpoint-dir={self.folder}/to/make")[1]["checkpoints"][0], "ok")
        self.assertFalse(os.path.exists(f"{self.folder}/to"))
        code, found = examine("--checkpoint-dir=/proc/none")
        self.assertEqual((code, found["checkpoints"][0]), (1, "wrong"))
        self.assertIn("/proc/", found["checkpoints"][1])

    def test_a_wrong_command_line_is_another_exit_code(self):
        self.assertEqual(examine("--workers=0")[0], 2)


if __name__ == "__main__":
    recorded_tests.main()
