#!/usr/bin/env python3
"""What tools/packaging/describe.py makes of a program's help."""

import os
import subprocess
import sys
import tempfile
import unittest

# The tree, by the link of the runfiles to WORKSPACE.
TREE = os.path.dirname(os.path.realpath("WORKSPACE"))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(TREE, "tests", "testing"), os.path.join(TREE, "tools", "packaging")]
# pylint: disable=wrong-import-position
import describe  # noqa: E402
import recorded_tests  # noqa: E402

PROGRAMS = ("server/sluice_server", "worker/sluice_train", "tools/evaluate/sluice_evaluate", "tools/ctl/sluicectl",
            "tools/doctor/sluice_doctor")
# As programs write it: a name as long as its column, one that is longer, groups, texts of several lines.
HELP = """Does something.
Usage: program [OPTIONS]

Options:
  -h,--help                   Print this help message and exit
  --mode {one,two}            which of both
                              modes (default: one)
  --a-flag-with-a-long-name TEXT
                              file of the log
  --exactly-wide-enough TEXT  text

Guards (How it is guarded):
  --kind {no,yes}             whether
  --careful                   take -x

Ends with 0, or
with 1.
"""


def options(told):
    return [(option.names, option.value, option.text) for option in told.options()]


class DescribeTest(unittest.TestCase):
    def test_reads_each_option_with_its_value_and_text(self):
        told = describe.Help(HELP)
        self.assertEqual((told.purpose, told.usage, told.notes),
                         ("Does something.", "program [OPTIONS]", ["Ends with 0, or with 1."]))
        self.assertEqual([(section.title, section.text) for section in told.sections],
                         [("Options", ""), ("Guards", "How it is guarded")])
        self.assertEqual(options(told), [
            ("-h,--help", "", "Print this help message and exit"),
            ("--mode", "{one,two}", "which of both modes (default: one)"),
            ("--a-flag-with-a-long-name", "TEXT", "file of the log"),
            ("--exactly-wide-enough", "TEXT", "text"),
            ("--kind", "{no,yes}", "whether"),
            ("--careful", "", "take -x"),
        ])

    def test_completes_flags_known_values_and_files(self):
        lines = list(describe.completion("program", describe.Help(HELP), {}))
        self.assertIn('    --mode) mapfile -t COMPREPLY < <(compgen -W "one two" -- "$cur"); return ;;', lines)
        self.assertIn('    --kind) mapfile -t COMPREPLY < <(compgen -W "no yes" -- "$cur"); return ;;', lines)
        self.assertIn("    --a-flag-with-a-long-name) _filedir; return ;;", lines)
        self.assertTrue(any("--help --mode= --a-flag-with-a-long-name=" in line for line in lines))

    def test_completes_the_flags_of_each_command(self):
        told = describe.help_of("tools/ctl/sluicectl")
        commands = describe.commands_of("tools/ctl/sluicectl", told)
        with tempfile.NamedTemporaryFile("w", suffix=".bash") as file:
            file.write("\n".join(describe.completion("sluicectl", told, commands)))
            file.flush()
            # What the package bash-completion would do, for these lines.
            script = ("_init_completion() { cur=${words_now[-1]} prev=${words_now[-2]} words=(\"${words_now[@]}\")\n"
                      "cword=$((${#words[@]} - 1)) split=false; }\n"
                      "_filedir() { COMPREPLY=(a-file); }\ncompopt() { :; }\n"
                      f". {file.name}\nwords_now=(\"$@\"); _sluicectl; echo \"${{COMPREPLY[*]}}\"")

            def completed(*words):
                return subprocess.run(["bash", "-c", script, "bash", "sluicectl", *words], check=True,
                                      capture_output=True, text=True).stdout.split()
            self.assertIn("status", completed(""))
            self.assertEqual(completed("policy", ""), ["show", "set"])
            self.assertEqual(completed("policy", "set", "--mode", "b"), ["backup", "bounded"])
            self.assertEqual(completed("--json", "workers", "--a"), ["--all"])
            self.assertEqual(completed("workers", "--sor"), ["--sort="])
            self.assertEqual(completed("drain", "--y"), ["--yes"])
            self.assertEqual(completed("status", "--serv"), ["--server="])
            self.assertEqual(completed("checkpoint", "verify", ""), ["a-file"])

    def test_completes_commands_and_leaves_the_rest_to_their_programs(self):
        told = describe.Help("Runs.\nUsage: all COMMAND\n\nSubcommands:\n"
                             "  train                       trains, too (its_program)\n"
                             "  help                        prints this\n")
        self.assertEqual(describe.programs_of(told), {"train": "its_program"})
        lines = list(describe.completion_of_commands("all", told))
        self.assertIn('    mapfile -t COMPREPLY < <(compgen -W "train help" -- "$cur")', lines)
        self.assertIn("    train) program=its_program ;;", lines)
        self.assertEqual(describe.programs_of(describe.Help(HELP)), {})

    def test_a_page_hides_no_line_and_no_hyphen_from_the_formatter(self):
        page = list(describe.manual("program", "1.2", describe.Help(HELP.replace("take -x", ".take -x")), {}, "2026-01-02"))
        self.assertEqual(page[0], '.TH PROGRAM 1 "2026-01-02" "Sluice 1.2" "User Commands"')
        self.assertIn("program \\- does something", page)
        self.assertIn("\\&.take \\-x", page)
        self.assertIn(".SS Guards", page)

    def test_each_program_is_described_whole(self):
        for program in PROGRAMS:
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run([sys.executable, os.path.join(TREE, "tools/packaging/describe.py"), program, "1.2", folder],
                               check=True)
                name = os.path.basename(program)
                with open(f"{folder}/{name}.1", encoding="utf-8") as file:
                    page = file.read()
                subprocess.run(["bash", "-n", f"{folder}/{name}"], check=True)
            told = describe.help_of(program)
            commands = describe.commands_of(program, told)
            leaves = [its for its in commands.values() if not its.section("Subcommands")]
            self.assertEqual(page.count("\n.TP\n"), len(told.options()) + len(leaves) +
                             sum(len(describe.own_options(its)) for its in leaves))
            for option in told.options():
                self.assertRegex(option.names, r"^(-\w,)?--[a-z]")
                self.assertNotEqual(option.text, "", option.names)
            for words, its in commands.items():
                self.assertTrue(its.purpose, words)
                self.assertTrue(all(option.text for option in its.options()), words)


if __name__ == "__main__":
    recorded_tests.main()
