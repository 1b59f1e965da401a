#!/usr/bin/env python3
"""Programs of PyTorch end through Sluice as they do in one process: programs.py has them."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "testing")]
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402

PYTHON = "/usr/bin/python3"  # it has the distribution's torch
PROGRAM = os.path.join(HERE, "programs.py")
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.path.abspath("worker/python"),
               "SLUICE_LIBRARY": os.path.abspath("worker/c/libsluice.so.0")}
# Sums in another order differ in the last bits, and a ReLU or an argmax may tell them apart.
FARTHEST = 1e-6
# Of the programs' own, with names that Sluice's have, too.
FLAGS = {"images_with_flags_and_a_snapshot": ["--workers=1", "--threads=1", "--name=mine"]}


def run(*words):
    return subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=200)


class ProgramsTest(unittest.TestCase):
    def ends_as_in_one_process(self, name, *flags):
        with tempfile.TemporaryDirectory() as folder:
            alone = os.path.join(folder, "alone.pt")
            own = FLAGS.get(name, [])
            ended = run(PYTHON, PROGRAM, name, "alone", alone, *own)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            ended = run("mpirun", "--oversubscribe", "--bind-to", "none", "-n", "3", PYTHON, PROGRAM, name, alone, *own, *flags)
            self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
            differences = [float(number) for number in re.findall(r"^difference (.*)$", ended.stdout, re.MULTILINE)]
            self.assertEqual(len(differences), 2, ended.stdout)
            self.assertLess(max(differences), FARTHEST, ended.stdout)


def _add(name):
    setattr(ProgramsTest, f"test_{name}", lambda self: self.ends_as_in_one_process(name))


for _name in re.findall(r"^def (\w+)\(how\):$", open(PROGRAM, encoding="utf-8").read(), re.MULTILINE):
    _add(_name)


if __name__ == "__main__":
    recorded_tests.main()
