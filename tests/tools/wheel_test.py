#!/usr/bin/env python3
"""Installs a wheel in a virtual environment, and trains: wheel_test.py WHEEL SERVER. tools/package --wheel --test runs it."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

WHEEL = os.path.abspath(sys.argv.pop(1))
SERVER = os.path.abspath(sys.argv.pop(1))  # sluice_server
EXAMPLE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "worker", "python", "examples", "images.py")
# A library that is not the wheel's must not help.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("SLUICE_", "PYTHONPATH"))}
ENVIRONMENT.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OPENBLAS_NUM_THREADS="1")


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        # It sees the distribution's torch.
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", cls.folder.name], check=True)
        cls.python = os.path.join(cls.folder.name, "bin", "python")
        subprocess.run([cls.python, "-m", "pip", "install", "--quiet", "--no-index", WHEEL], env=ENVIRONMENT, check=True)

    def run_python(self, *words, **environment):
        ended = subprocess.run([self.python, *words], env={**ENVIRONMENT, **environment}, cwd=self.folder.name,
                               capture_output=True, text=True, check=False, timeout=200)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def test_the_library_and_all_that_it_needs_are_the_wheels(self):
        mapped = self.run_python("-c", "import sluice; sluice.start; print(open('/proc/self/maps').read())")
        carried = set(re.findall(r"/\S*/lib(?:sluice|grpc|protobuf|absl\w*)\S*\.so\S*", mapped))
        self.assertGreater(len(carried), 10)
        self.assertEqual([path for path in carried if not path.startswith(self.folder.name)], [])

    def test_two_workers_train_by_mpirun(self):
        ended = subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "3", self.python, EXAMPLE,
                                "--max-steps=20"], env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=200)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertRegex(ended.stdout, r"accepted +40\n")

    def test_two_workers_train_with_a_server_by_its_address(self):
        address = f"unix:{self.folder.name}/server"
        server = subprocess.Popen([SERVER, f"--listen={address}", "--workers=2"], env=ENVIRONMENT, stdout=subprocess.PIPE,
                                  text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        workers = [subprocess.Popen([self.python, EXAMPLE, "--max-steps=20"],
                                    env={**ENVIRONMENT, "SLUICE_SERVER": address, "SLUICE_NAME": name}) for name in "ab"]
        self.assertEqual([worker.wait(timeout=200) for worker in workers], [0, 0])
        said, _ = server.communicate(timeout=60)
        self.assertRegex(said, r"accepted +40\n")


if __name__ == "__main__":
    unittest.main()
