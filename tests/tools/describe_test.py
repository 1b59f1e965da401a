#!/usr/bin/env python3
"""What tools/packaging/describe.py makes of a program's help."""

import functools
import os
import re
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

describe.help_of = functools.cache(describe.help_of)

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

    def test_no_program_has_a_flag_twice(self):
        for program in PROGRAMS:
            flags = [flag for option in describe.help_of(program).options() for flag in option.flags()]
            self.assertEqual([flag for flag in sorted(set(flags)) if flags.count(flag) > 1], [], program)

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

    def test_a_page_has_the_exit_codes_of_the_help(self):
        told = describe.Help(HELP + "\nSomething more. Exit codes: those of others; 0 done; 3 gone, or\nlost.\n")
        self.assertEqual(describe.exit_codes("program", told), ([("0", "done"), ("3", "gone, or lost")], ["Those of others."]))
        page = list(describe.manual("program", "1.2", told, {}, "2026-01-02"))
        begin = page.index(".SH EXIT STATUS")
        self.assertEqual(page[begin:begin + 9], [".SH EXIT STATUS", ".PP", "Those of others.", ".TP", "\\fB0\\fR", "done",
                                                 ".TP", "\\fB3\\fR", "gone, or lost"])
        self.assertEqual(page[page.index(".SH NOTES"):][1:5], [".PP", "Ends with 0, or with 1.", ".PP", "Something more."])

    def test_a_page_has_the_variables_and_the_examples_of_the_help(self):
        told = describe.Help(HELP + "\nEach flag has a variable SLUICE_X.\n")
        examples = describe.examples_in("Options:\n\nExamples:\n  program --careful   # -x\n  .program\n\nMore.\n")
        page = list(describe.manual("program", "1.2", told, {}, "2026-01-02", examples))
        begin = page.index(".SH ENVIRONMENT")
        self.assertEqual(page[begin:begin + 3], [
            ".SH ENVIRONMENT", ".PP", "Each flag has a variable SLUICE_X. For example, SLUICE_MODE stands for \\-\\-mode."])
        begin = page.index(".SH EXAMPLES")
        self.assertEqual(page[begin:begin + 5], [".SH EXAMPLES", ".EX", "program \\-\\-careful   # \\-x", "\\&.program", ".EE"])

    def test_the_exit_codes_are_those_of_the_sources(self):
        # The table of worker/README.md, and the comments of the programs and of the function that chooses the code.
        for program, source in (("sluice_server", "server/program/server_main.cc"),
                                ("sluice_train", "worker/program/train_main.cc")):
            codes, _ = describe.exit_codes(program, describe.Help(HELP))
            comment = re.search(r"^// Exit codes: ((?:.*\n//)*.*)", describe.read_page(source), re.MULTILINE).group(1)
            told = re.findall(r"(?:^|; )(\d+) ", comment.replace("\n// ", " "))
            self.assertEqual([code for code, _ in codes], told, program)
            self.assertTrue(all(text for _, text in codes))
        page = describe.read_page("tools/ctl/README.md").replace("\n", " ")
        told, _ = describe.exit_codes("sluicectl", describe.help_of("tools/ctl/sluicectl"))
        self.assertEqual([code for code, _ in told], re.findall(r"(?:: |; )(\d) ", page[page.index("Exit codes: "):]))

    def test_a_variable_that_sets_a_flag_is_named_as_the_program_reads_it(self):
        for program in PROGRAMS:
            sentences, _ = describe.environment(os.path.basename(program), describe.help_of(program))
            variable, flag = re.search(r"For example, (\w+) stands for (--[\w-]+)\.$", sentences[0]).groups()
            command = ["status"] if program.endswith("ctl") else []
            told = subprocess.run([program, "--print-config", *command], env={**os.environ, variable: "7"}, check=False,
                                  capture_output=True, text=True)
            self.assertIn("7", told.stdout + told.stderr, f"{program} {flag}")
            self.assertIn(flag.removeprefix("--"), told.stdout + told.stderr)

    def test_the_variables_are_those_that_programs_read(self):
        def named(program):
            return {names.partition("=")[0] for names, _ in describe.environment(program, describe.Help(HELP))[1]}
        self.assertEqual(named("sluice_server"), {"XDG_RUNTIME_DIR"})
        self.assertEqual(named("sluicectl"), {"SLUICE_CONTEXTS"})
        self.assertIn("SLUICE_SERVER", named("sluice_train"))
        self.assertEqual(named("sluice_doctor"), set())

    def test_each_program_has_examples_whose_flags_it_has(self):
        for program in PROGRAMS:
            name = os.path.basename(program)
            told = describe.help_of(program)
            flags = {flag for its in (told, *describe.commands_of(program, told).values())
                     for option in its.options() for flag in option.flags()}
            examples = describe.examples_of(program)
            self.assertGreater(len(examples), 1, program)
            for example in examples:
                self.assertIn(name, example)
                used = {word.partition("=")[0] for word in example.partition("#")[0].split() if word.startswith("--")}
                self.assertLessEqual(used, flags, example)

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
            described, _, closing = page.partition("\n.SH EXIT STATUS\n")
            for title in ("ENVIRONMENT", "EXAMPLES", "SEE ALSO"):
                self.assertIn(f"\n.SH {title}\n", closing, program)
            self.assertEqual(described.count("\n.TP\n"), len(told.options()) + len(leaves) +
                             sum(len(describe.own_options(its)) for its in leaves))
            for option in told.options():
                self.assertRegex(option.names, r"^(-\w,)?--[a-z]")
                self.assertNotEqual(option.text, "", option.names)
            for words, its in commands.items():
                self.assertTrue(its.purpose, words)
                self.assertTrue(all(option.text for option in its.options()), words)


if __name__ == "__main__":
    recorded_tests.main()
