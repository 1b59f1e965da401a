#!/usr/bin/env python3
"""Each flag of each program that is no free text is given a wrong value: the sentence says what was expected and found.

Usage: flag_sentences_test.py FORKED_MAIN PROGRAM... [-- TEST...]
"""

import functools
import os
import re
import subprocess
import sys
import unittest

FORKED_MAIN = ""
PROGRAMS = []
TYPED = re.compile(r"^  (?:-\w,)?(--[a-z0-9-]+)(?:,\S+)? (N|X|\{\S+\})(?: .*)?$", re.M)
LONGEST = 300  # a sentence, not a range of all digits of a double


@functools.lru_cache(maxsize=None)
def loaded(program):
    return subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
                            env={**os.environ, "LD_PRELOAD": FORKED_MAIN, "ASAN_OPTIONS": "verify_asan_link_order=0"})


def answer(program, *words):
    """The exit code of the program, and what it says, in a fork of a process that has loaded its libraries."""
    process = loaded(program)
    process.stdin.write("\t".join([program, *words]) + "\n")
    process.stdin.flush()
    output = ""
    for line in process.stdout:
        if line.startswith("\4"):
            return int(line[1:]), output
        output += line
    raise AssertionError(f"{program} has ended: {output}")


class FlagSentences(unittest.TestCase):
    def expect_sentence(self, program, flag, value):
        code, output = answer(program, f"{flag}={value}")
        sentence = output.split("\n")[0]
        self.assertEqual(code, 2, output)
        self.assertRegex(sentence, f"^{flag}: expected .*, found {value}$")
        self.assertLess(len(sentence), LONGEST)
        self.assertNotIn("->", sentence)

    def test_every_flag_with_a_word_that_is_no_value(self):
        for program in PROGRAMS:
            flags = TYPED.findall(answer(program, "--help-all")[1])
            self.assertGreater(len(flags), 0, program)
            for flag, kind in flags:
                with self.subTest(program=os.path.basename(program), flag=flag, kind=kind):
                    self.expect_sentence(program, flag, "wr;ong")

    def test_numbers_that_are_too_small(self):
        for program in PROGRAMS:
            for flag, kind in TYPED.findall(answer(program, "--help-all")[1]):
                if kind != "N":
                    continue
                with self.subTest(program=os.path.basename(program), flag=flag, kind=kind):
                    self.expect_sentence(program, flag, "-7")


if __name__ == "__main__":
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    FORKED_MAIN, *PROGRAMS = map(os.path.abspath, sys.argv[1:end])
    unittest.main(argv=sys.argv[:1] + sys.argv[end + 1:], verbosity=2)
