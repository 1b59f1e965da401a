#!/usr/bin/env python3
"""sluice becomes the program of its command, or mpirun that starts it."""

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


def run(*words, program=SLUICE, **environment):
    return subprocess.run([program, *words], capture_output=True, text=True, check=False, env={**os.environ, **environment})


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
        self.assertIn("Exit codes: those of the program; 2 the command line is wrong; 127 the program is not\nthere.\n",
                      run("help").stdout)

    def test_programs_call_themselves_by_their_commands(self):
        for command in ("serve", "train", "ctl", "doctor"):
            self.assertIn(f"Usage: sluice {command} ", run(command, "--help").stdout)
            self.assertIn(f"sluice {command} (Sluice) ", run(command, "--version").stdout)
        for words in (("serve",), ("train", "--role=single", "--trace=x"), ("ctl", "checkpoint", "show", "/none")):
            self.assertRegex(run(*words).stderr, f"(^|\\n)sluice {words[0]}: ")

    def test_serve_with_a_function_of_python_is_its_module(self):
        self.put(self.bin, "python3", 'printf "%s|" "$@"; exit 7')
        ended = run("serve", "my train.py:make", "--workers=2", program=self.sluice, PATH=self.bin)
        self.assertEqual((ended.returncode, ended.stdout), (7, "-m|sluice.server|my train.py:make|--workers=2|"))

    def test_run_is_mpirun_on_this_machine_with_any_number_of_ranks(self):
        self.put(self.bin, "mpirun", 'printf "%s|" "$@"; exit 7')
        for count in (["-n", "3"], ["-n3"], ["-n=3"], ["-np", "3"], ["-n", "3", "--"]):
            ended = run("run", *count, "python3", "my train.py", "-n", "", program=self.sluice, PATH=self.bin)
            self.assertEqual((ended.returncode, ended.stdout),
                             (7, "--oversubscribe|--bind-to|none|-n|3|python3|my train.py|-n||"))

    def test_run_lets_root_and_nobody_else_past_mpirun(self):
        self.put(self.bin, "mpirun", 'echo "$OMPI_ALLOW_RUN_AS_ROOT$OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"')
        ended = run("run", "-n", "3", "true", program=self.sluice, PATH=self.bin, OMPI_ALLOW_RUN_AS_ROOT="",
                    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="")
        self.assertEqual(ended.stdout, "11\n" if os.geteuid() == 0 else "\n")

    def test_run_finds_programs_of_sluice_by_their_commands(self):
        self.put(self.bin, "mpirun", 'shift 5; echo "$@"')
        self.put(self.libexec, "sluice_train", "")
        ended = run("run", "-n", "3", "train", "--epochs=1", program=self.sluice, PATH=self.bin)
        self.assertEqual(ended.stdout, f"{self.libexec}/sluice_train --epochs=1\n")
        missing = run("run", "-n", "3", "serve", program=self.sluice, PATH=self.bin)
        self.assertEqual((missing.returncode, missing.stdout), (127, ""))
        self.assertIn("sluice_server is not there", missing.stderr)

    def test_run_says_what_is_wrong_with_its_command_line(self):
        no_count = "expected -n N, the number of ranks, before the program, for example -n 4"
        for words, said in (
                ([], no_count), (["train"], no_count), (["train", "-n", "3"], no_count),
                (["-n"], "-n: expected a whole number from 1, found "),
                (["-n", "0", "train"], "-n: expected a whole number from 1, found 0"),
                (["-n", "many", "train"], "-n: expected a whole number from 1, found many"),
                (["-n", "-3", "train"], "-n: expected a whole number from 1, found -3"),
                (["-n", "3"], "expected a program after -n N, for example train or python3 train.py"),
                (["-n", "3", "--host", "a", "train"], "--host before the program is not a flag of sluice run"),
                (["-nolocal", "train"], "-nolocal before the program is not a flag of sluice run")):
            ended = run("run", *words, program=self.sluice, PATH=self.bin)
            self.assertEqual((ended.returncode, ended.stdout, ended.stderr),
                             (2, "", f"sluice run: {said}; sluice run --help says more\n"))

    def test_run_names_the_package_of_a_missing_mpirun(self):
        ended = run("run", "-n", "3", "true", program=self.sluice, PATH=self.bin)
        self.assertEqual((ended.returncode, ended.stderr),
                         (127, "sluice run: there is no mpirun; install the package openmpi-bin\n"))

    def test_run_has_a_help(self):
        told = run("run", "--help")
        self.assertEqual(told.returncode, 0)
        self.assertIn("Usage: sluice run -n N PROGRAM", told.stdout)
        self.assertEqual(run("help", "run").stdout, told.stdout)
        self.assertEqual(run("run", "-n", "3", "--help").stdout, told.stdout)

    def test_run_trains_with_one_rank_that_serves(self):
        ended = run("run", "-n", "3", "train", "--model=logistic", "--max-steps=4", "--no-test")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout + ended.stderr, r"\n  pushes received +8\n")

    def test_the_version_is_said(self):
        self.assertRegex(run("version").stdout, r"^sluice \(Sluice\) \d+\.\d+\.\d+\ncommit ")


if __name__ == "__main__":
    recorded_tests.main()
