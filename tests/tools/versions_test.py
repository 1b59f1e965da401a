#!/usr/bin/env python3
"""What every program says with --version."""

import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "testing"))
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402

PROGRAMS = {
    "server/sluice_server": ["protocol", "gRPC"],
    "worker/sluice_train": ["protocol", "gRPC", "LibTorch"],
    "tools/evaluate/sluice_evaluate": ["protocol", "gRPC", "LibTorch"],
    "tools/ctl/sluicectl": ["protocol", "gRPC"],
    "tools/doctor/sluice_doctor": ["protocol", "gRPC"],
    "tools/ctl/sluicectl_export": ["LibTorch"],
}
with open("common/base/version.h", encoding="utf-8") as header:
    VERSION = re.search(r'kVersion\[\] = "(.*)";', header.read()).group(1)


class VersionsTest(unittest.TestCase):
    def test_each_program_names_its_version_and_what_it_is_built_with(self):
        for program, parts in PROGRAMS.items():
            ended = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
            first, commit, *others = ended.stdout.splitlines()
            self.assertEqual(first, f"{os.path.basename(program)} (Sluice) {VERSION}")
            self.assertRegex(commit, r"^commit (unknown|[0-9a-f]{40}( with changes)?)$")
            self.assertEqual([line.split()[0] for line in others], parts, program)
            for name, version in map(str.split, others):
                self.assertRegex(version, r"^sluice\.v\d+$" if name == "protocol" else r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    recorded_tests.main()
