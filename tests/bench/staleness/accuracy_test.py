#!/usr/bin/env python3
"""Tests the comparison of remedies: which runs it makes, what its table says, and what its picture shows."""

import os
import stat
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

SCRIPT = os.path.abspath("tools/bench/staleness/accuracy.py")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(SCRIPT))
import accuracy  # noqa: E402

# Notes its flags, and reaches 0.9 less a point for each worker beyond one, and less 0.6 without rules.
PROGRAM = """#!/bin/bash
echo "$*" >>"$(dirname "$0")/calls"
workers=1 rules=auto ended=''
for flag in "$@"; do
  case $flag in
    --workers=*) workers=${flag#*=} ;;
    --staleness-rules=*) rules=${flag#*=} ;;
  esac
done
mean=$((91 - workers))
if [[ $rules == none ]]; then mean=$((mean - 60)) ended=' ended: a gradient is not finite'; fi
echo "epoch=1 loss=1"
echo "model=lenet staleness=$((workers - 1)).00 accuracy=0.$mean$ended"
"""

TABLE = (
    "lenet, 2 seeds: test accuracy by workers. "
    "One process: 90.00 % (90.00 to 90.00); in brackets the points off it.\n"
    """
| | 2 workers | 4 workers |
|---|---|---|
| async+none | 29.00 (-61.00), staleness 1.0, 2 ended early | 27.00 (-63.00), staleness 3.0, 2 ended early |
| async+auto | 89.00 (-1.00), staleness 1.0 | 87.00 (-3.00), staleness 3.0 |
"""
)


class AccuracyTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.program = self.path("program")
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        os.chmod(self.program, stat.S_IRWXU)

    def path(self, name):
        return os.path.join(self.folder, name)

    def compare(self, *flags):
        command = [sys.executable, "-B", SCRIPT, f"--program={self.program}", "--workers=1,2,4", "--seeds=2",
                   "--lines=async+none,async+auto", *flags]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        return run.stdout

    def calls(self):
        with open(self.path("calls"), encoding="utf-8") as file:
            return sorted(file.read().splitlines())

    def test_prints_means_and_their_distance_to_one_process(self):
        self.assertEqual(self.compare(), TABLE)

    def test_runs_each_line_with_each_number_of_workers_and_seed_and_one_process_once(self):
        self.compare("--", "--epochs=1")
        common = "--model=lenet --learning-rate=0.03 --momentum=0.9 --epochs=1"
        expected = [f"{common} --mode=sync --seed={seed}" for seed in (1, 2)]
        for rules in ("none", "auto"):
            for workers in (2, 4):
                flags = f"--mode=async --staleness-rules={rules} --workers={workers}"
                expected += [f"{common} {flags} --seed={seed}" for seed in (1, 2)]
        self.assertEqual(self.calls(), sorted(expected))

    def test_makes_no_run_again_whose_result_it_finds(self):
        self.compare(f"--results={self.path('results')}")
        calls = self.calls()
        self.assertEqual(self.compare(f"--results={self.path('results')}"), TABLE)
        self.assertEqual(self.calls(), calls)

    def test_draws_each_line_and_marks_what_is_below_the_edge(self):
        self.compare(f"--picture={self.path('picture.svg')}")
        picture = xml.dom.minidom.parse(self.path("picture.svg"))
        texts = [node.firstChild.data for node in picture.getElementsByTagName("text")]
        self.assertEqual(len(picture.getElementsByTagName("polyline")), 2)
        for text in ("one process", "async+none", "async+auto", "29 %", "27 %"):
            self.assertIn(text, texts)

    def test_understands_lines(self):
        self.assertEqual(accuracy.flags_of("sync"), ["--mode=sync"])
        self.assertEqual(accuracy.flags_of("local:8"), ["--mode=sync", "--local-steps=8"])
        self.assertEqual(accuracy.flags_of("ssp+gap-aware+ordered-momentum"),
                         ["--mode=ssp", "--staleness-rules=gap-aware,ordered-momentum"])
        self.assertEqual(accuracy.flags_of("async+discount"),
                         ["--mode=async", "--discount-stale", "--staleness-rules=none"])


if __name__ == "__main__":
    unittest.main()
