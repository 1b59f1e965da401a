#!/usr/bin/env python3
"""Launches over two nodes that tools/cluster/try makes: by mpirun with a host file, and under Slurm."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "testing"))
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402

# The tree, by the link of the runfiles to WORKSPACE.
TREE = os.path.dirname(os.path.realpath("WORKSPACE"))
TRAIN = os.path.realpath("worker/sluice_train")
STEPS = 20


class ClusterTest(unittest.TestCase):
    def need(self, *programs):
        """Skips the test where a program is missing, or where namespaces cannot be made."""
        missing = [program for program in programs if not shutil.which(program, path="/usr/bin:/usr/sbin:/bin:/sbin")]
        if missing:
            self.skipTest(f"{', '.join(missing)} not installed; `tools/setup cluster` installs what is missing")
        made = subprocess.run(["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "true"], capture_output=True,
                              text=True, check=False)
        if made.returncode:
            self.skipTest(f"no namespaces: {made.stderr.strip()}; run as root")

    def launch(self, how, *flags, workers=3):
        """Runs a job, each of whose workers pushes once for each step."""
        ended = subprocess.run([os.path.join(TREE, "tools/cluster/try"), how, f"--max-steps={STEPS}", *flags],
                               env={**os.environ, "PROGRAM": TRAIN}, capture_output=True, text=True, check=False,
                               timeout=240)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        told = dict(re.findall(r"^  (steps|pushes received|accepted|  accepted) +(\d+)$", ended.stdout, re.MULTILINE))
        self.assertEqual(told, {"steps": str(STEPS), "pushes received": str(workers * STEPS),
                                "  accepted": str(workers * STEPS)}, ended.stdout)
        return ended.stdout + ended.stderr

    def test_mpirun_with_a_host_file_trains_over_tls(self):
        self.need("sshd", "mpirun", "ip")
        self.assertIn("with mutual TLS", self.launch("hosts"))

    def test_mpirun_gives_each_node_a_server(self):
        self.need("sshd", "mpirun", "ip")
        said = self.launch("hosts", "--servers=2", workers=2)
        self.assertIn("the servers are rank 0 on node1, rank 2 on node2", said)
        self.assertIn("server 1 of 2 follows, at 10.78.0.2:", said)

    def test_srun_trains_in_an_allocation_of_two_nodes(self):
        self.need("slurmctld", "slurmd", "munged", "srun", "ip")
        self.launch("slurm-srun")

    def test_mpirun_trains_in_an_allocation_of_two_nodes(self):
        self.need("slurmctld", "slurmd", "munged", "sbatch", "mpirun", "ip")
        self.launch("slurm-mpirun")

    def test_allreduce_and_a_server_are_compared_over_links(self):
        self.need("sshd", "mpirun", "ip", "tc")
        nodes, parameters = 4, 4 * 203530
        with tempfile.TemporaryDirectory() as folder:
            ended = subprocess.run(
                [os.path.join(TREE, "tools/bench/comparison"), "--methods=allreduce (MPI),allreduce (gloo),async",
                 "--columns=1 Gbit/s", "--learning-rates=0.05", "--momenta=0", "--seeds=1", "--seconds=2",
                 f"--results={folder}/results", "--", "--max-steps=3"],
                env={**os.environ, "SLUICE_BIN": os.getcwd()}, capture_output=True, text=True, check=False, timeout=240)
            self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
            with open(f"{folder}/results", encoding="utf-8") as lines:
                results = [json.loads(line.split("\t")[1]) for line in lines]
        self.assertEqual([result["method"] for result in results], ["allreduce (MPI)", "allreduce (gloo)", "async"])
        for result in results:
            # All ranks together send 2 (n - 1) models in a step; a worker and the server one each in a round.
            sends = (2 * (nodes - 1) * max(result["batches"]) if "allreduce" in result["method"]
                     else 2 * sum(result["batches"]))
            self.assertGreater(sends, 0)
            self.assertAlmostEqual(result["bytes"] / (sends * parameters), 1.1, delta=0.15, msg=result["method"])


if __name__ == "__main__":
    recorded_tests.main()
