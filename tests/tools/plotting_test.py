#!/usr/bin/env python3
"""What tools/sweep and tools/plot make of the records of real runs."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

# The tree, by the link of the runfiles to WORKSPACE.
TREE = os.path.dirname(os.path.realpath("WORKSPACE"))
sys.path.insert(0, os.path.join(TREE, "tools", "plotting"))
# pylint: disable=wrong-import-position
import plot  # noqa: E402
import sweep  # noqa: E402
from results import Results  # noqa: E402

TRAIN = os.path.abspath("worker/sluice_train")


class ResultsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = os.path.join(self.folder.name, "results.tsv")
        self.runs = []

    def make(self, flags):
        self.runs.append(flags)
        return f"result {len(self.runs)}"

    def test_makes_each_run_once_also_in_a_later_call(self):
        with contextlib.redirect_stderr(io.StringIO()):
            first = Results(self.make, self.file)
            self.assertEqual([first.make(["a", "b"]), first.make(["c"]), first.make(["a", "b"])],
                             ["result 1", "result 2", "result 1"])
            later = Results(self.make, self.file)
            self.assertEqual([later.make(["c"]), later.make(["d"])], ["result 2", "result 3"])
        self.assertEqual(self.runs, [["a", "b"], ["c"], ["d"]])

    def test_leaves_out_a_line_that_a_full_disk_has_cut(self):
        with open(self.file, "w", encoding="utf-8") as file:
            file.write("a\tkept\nb")
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(Results(self.make, self.file).make(["a"]), "kept")
            self.assertEqual(Results(self.make, self.file).make(["b"]), "result 1")


class SweepTest(unittest.TestCase):
    def sweep(self, *arguments):
        program = os.path.join(TREE, "tools", "plotting", "sweep.py")
        return subprocess.run([sys.executable, program, *arguments], capture_output=True, text=True, check=False)

    def test_trains_once_for_each_combination_and_goes_on_where_it_was(self):
        with tempfile.TemporaryDirectory() as folder:
            common = ["--modes=single", "--momenta=0,0.9", "--seeds=2", f"--results={folder}/results.tsv"]
            flags = ["--", "--max-steps=3"]
            first = self.sweep(f"--program={TRAIN}", "--learning-rates=0.01", *common, *flags)
            self.assertEqual(first.returncode, 0, first.stderr)
            self.assertEqual(len(first.stdout.splitlines()), 4)
            self.assertEqual(first.stdout.count("**single**"), 1)
            self.assertEqual([line.split(",")[0] for line in first.stderr.splitlines()],
                             [f"sweep: run {run} of 4" for run in range(1, 5)])
            again = self.sweep("--program=/bin/false", "--learning-rates=0.01", *common, *flags)
            self.assertEqual(again.stdout, first.stdout)
            more = self.sweep(f"--program={TRAIN}", "--learning-rates=0.01,0.02", *common, *flags)
            self.assertEqual(len(more.stdout.splitlines()), 6)
            self.assertIn("sweep: run 4 of 4, 0 min left: ", more.stderr)
            with open(f"{folder}/results.tsv", encoding="utf-8") as lines:
                self.assertEqual(len(lines.readlines()), 8)

    def test_says_why_runs_failed(self):
        swept = self.sweep(f"--program={TRAIN}", "--modes=single", "--learning-rates=0.01", "--momenta=0", "--",
                           "--dataset=cifar10")
        self.assertEqual(swept.returncode, 1)
        self.assertIn("| **single** | **0.01** | **0** | **-** | **-** | **-** | **1** |", swept.stdout)
        self.assertIn("--dataset=cifar10 needs --data-dir, the folder of its files", swept.stdout)

    def test_says_not_which_runs_are_over_with_quiet(self):
        swept = self.sweep("--program=/bin/false", "--modes=single", "--learning-rates=0.01", "--momenta=0", "--quiet")
        self.assertEqual((swept.returncode, swept.stderr), (1, ""))

    def test_takes_means_over_seeds_and_counts_what_failed(self):
        runs = [{"accuracy": 0.5, "loss": 1.5, "seconds": 1}, {"accuracy": 0.7, "loss": 0.5, "seconds": 3},
                {"status": 7, "error": "it diverged"}]
        printed = sweep.table({("sync", 0.1, 0.0): runs, ("sync", 0.2, 0.0): [{"accuracy": 0.45, "loss": None}] * 3})
        self.assertIn("| sync | 0.1 | 0 | 60.00 (50.00 to 70.00) | 1.0000 (0.5000 to 1.5000) | 2 (1 to 3) | 1 |", printed)
        self.assertIn("| **sync** | **0.2** |", printed)  # a failure counts as 0
        self.assertIn("it diverged", printed)


class PlotTest(unittest.TestCase):
    def test_adds_the_speed_of_all_workers(self):
        def line(worker, seconds, samples):
            return {"worker": worker, "seconds": seconds, "samples": samples, "loss": 1, "step": 1}
        records = [line(0, 1, 1000), line(1, 1, 900), line(0, 3, 200), line(1, 2, 50), {"worker": 0, "seconds": 9}]
        self.assertEqual(plot.workers_of(records), [0, 1])
        self.assertEqual(plot.speed_of(records), 100 + 50)

    def test_adds_the_parts_of_each_worker_and_leaves_out_the_server(self):
        events = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "server"}},
                  {"name": "process_name", "ph": "M", "pid": 2, "args": {"name": "worker-0"}},
                  {"name": "push", "ph": "X", "pid": 1, "ts": 0, "dur": 500000},
                  {"name": "push", "ph": "X", "pid": 2, "ts": 0, "dur": 500000},
                  {"name": "push", "ph": "X", "pid": 2, "ts": 9, "dur": 250000},
                  {"name": "wait", "ph": "X", "pid": 2, "ts": 9, "dur": 1000000}]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(json.dumps(events)[:-1] + ",\n")  # of a job that was killed
            file.flush()
            parts = plot.parts_of(file.name)
        self.assertEqual(list(parts), ["worker-0"])
        self.assertEqual(parts["worker-0"]["push"], 0.75)
        self.assertEqual(parts["worker-0"]["wait"], 1)

    def test_reads_what_sluice_train_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/run.json"
            subprocess.run([TRAIN, "--role=single", "--max-steps=3", "--progress=off", f"--json={path}"], check=True,
                           capture_output=True)
            records = plot.records_of(path)
        self.assertEqual(plot.workers_of(records), [0])
        self.assertEqual(sum(record["samples"] for record in plot.steps_of(records)), 96)
        self.assertEqual(records[-1]["test_samples"], 10000)
        self.assertEqual(records[-1]["step"], 3)

    def test_names_the_line_that_is_no_record(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"seconds": 1}\nnothing\n')
            file.flush()
            with self.assertRaisesRegex(SystemExit, "line 2 is no record of sluice_train --json: nothing"):
                plot.records_of(file.name)


if __name__ == "__main__":
    unittest.main()
