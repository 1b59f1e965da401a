#!/usr/bin/env python3
"""Ranks of sluice_train --role=allreduce end where one process ends whose batch is as large as all of theirs."""

import json
import os
import subprocess
import tempfile
import unittest

TRAIN = os.path.abspath("worker/sluice_train")
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
COMMON = ["--max-steps=10", "--learning-rate=0.05", "--momentum=0.9", "--lr-schedule=cosine", "--lr-total-steps=10",
          "--progress=off"]
RANKS, BATCH = 3, 32
SPARSE = """
import sys, torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.shades = torch.nn.Embedding(16, 2, sparse=True)
        self.output = torch.nn.Linear(2 * 28 * 28, 10)

    def forward(self, images):
        shades = (15 * images.flatten(1)).clamp(0, 15).to(torch.int64)
        return self.output(self.shades(shades).flatten(1) / 28)

torch.manual_seed(5)
torch.jit.script(Model()).save(sys.argv[1])
"""


def train(launcher, *flags):
    """Returns the last line of the run's record, which is that of the test."""
    with tempfile.NamedTemporaryFile("r", suffix=".json", encoding="utf-8") as record:
        subprocess.run([*launcher, TRAIN, *COMMON, *flags, f"--json={record.name}"], env=ENVIRONMENT, check=True,
                       capture_output=True, timeout=120)
        lines = [json.loads(line) for line in record]
    return next(line for line in lines if "test_loss" in line)


class AllreduceTest(unittest.TestCase):
    def compare(self, model):
        launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(RANKS)]
        together = train(launcher, "--role=allreduce", f"--batch-size={BATCH}", f"--model={model}")
        alone = train([], "--role=single", f"--batch-size={RANKS * BATCH}", f"--model={model}")
        untrained = train([], "--role=single", "--learning-rate=0", f"--model={model}")
        self.assertEqual(together["workers"], RANKS)
        self.assertEqual(together["step"], alone["step"])
        return together["test_loss"], alone["test_loss"], untrained["test_loss"]

    def test_ranks_end_where_one_process_with_the_whole_batch_ends(self):
        together, alone, untrained = self.compare("lenet")
        self.assertAlmostEqual(together, alone, delta=1e-6)
        self.assertGreater(abs(untrained - alone), 1e-3)

    def test_sparse_gradients_are_averaged(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/model.py", "w", encoding="ascii") as program:  # scripting reads the source
                program.write(SPARSE)
            subprocess.run(["/usr/bin/python3", program.name, f"{folder}/model.pt"], check=True)
            together, alone, untrained = self.compare(f"{folder}/model.pt")
        self.assertAlmostEqual(together, alone, delta=1e-5)
        self.assertGreater(abs(untrained - alone), 1e-3)

    def test_it_needs_a_launch(self):
        ended = subprocess.run([TRAIN, "--role=allreduce"], env={"PATH": os.environ["PATH"]}, capture_output=True,
                               text=True, check=False)
        self.assertEqual(ended.returncode, 2)
        self.assertIn("allreduce needs several ranks; launch with mpirun", ended.stderr)


if __name__ == "__main__":
    unittest.main()
