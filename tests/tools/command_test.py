#!/usr/bin/env python3
"""sluice becomes the program of its command."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "testing"))
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402

SLUICE = "tools/command/sluice"


def run(*words, program=SLUICE):
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.bin = os.path.join(folder.name, "bin")
        self.libexec = os.path.join(folder.name, "libexec", "sluice")
        os.makedirs(self.bin)
        os.makedirs(self.libexec)
        self.sluice = shutil.copy(os.path.realpath(SLUICE), self.bin)

    def put(self, folder, name, script):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o755)

    def test_a_command_is_its_program_with_all_arguments_and_its_exit_code(self):
        self.put(self.bin, "sluice_train", 'printf "%s|" "$@"; exit 7')
        ended = run("train", "--a=b c", "", "--help", program=self.sluice)
        self.assertEqual((ended.returncode, ended.stdout), (7, "--a=b c||--help|"))

    def test_a_program_keeps_the_process(self):
        self.put(self.bin, "sluice_server", "echo $$")
        with subprocess.Popen([self.sluice, "serve"], stdout=subprocess.PIPE, text=True) as process:
            self.assertEqual(process.communicate()[0], f"{process.pid}\n")

    def test_a_program_may_lie_in_libexec(self):
        self.put(self.libexec, "sluicectl", "echo $1")
        self.assertEqual(run("ctl", "list", program=self.sluice).stdout, "list\n")

    def test_help_of_a_command_is_that_of_its_program(self):
        self.put(self.bin, "sluice_train", "echo $1")
        self.assertEqual(run("help", "train", program=self.sluice).stdout, "--help\n")

    def test_a_program_that_is_not_there_is_named(self):
        ended = run("doctor", program=self.sluice)
        self.assertEqual((ended.returncode, ended.stdout), (127, ""))
        self.assertIn("bazel build //tools/doctor:sluice_doctor", ended.stderr)

    def test_an_unknown_command_is_told_the_nearest(self):
        ended = run("trian")
        self.assertEqual(ended.returncode, 2)
        self.assertEqual(ended.stderr, 'sluice: there is no command "trian"; the nearest is train; sluice help lists all\n')

    def test_without_a_command_the_help_is_an_error(self):
        self.assertEqual(run().returncode, 2)
        self.assertEqual(run("help").stdout, run().stderr)

    def test_the_help_tells_the_exit_codes_of_the_tests_above(self):
        self.assertIn("Exit codes: those of the program; 2 there is no such command; 127 the program is not\nthere.\n",
                      run("help").stdout)

    def test_programs_call_themselves_by_their_commands(self):
        for command in ("serve", "train", "ctl", "doctor"):
            self.assertIn(f"Usage: sluice {command} ", run(command, "--help").stdout)
            self.assertIn(f"sluice {command} (Sluice) ", run(command, "--version").stdout)
        for words in (("serve",), ("train", "--role=single", "--trace=x"), ("ctl", "checkpoint", "show", "/none")):
            self.assertRegex(run(*words).stderr, f"(^|\\n)sluice {words[0]}: ")

    def test_the_version_is_said(self):
        self.assertRegex(run("version").stdout, r"^sluice \(Sluice\) \d+\.\d+\.\d+\ncommit ")


if __name__ == "__main__":
    recorded_tests.main()
