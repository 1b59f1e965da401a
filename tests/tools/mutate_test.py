#!/usr/bin/env python3
"""Tests tools/mutate: what it draws, that it leaves the checkout alone, and that it goes on where it was.

It plays mutants in a small tree of its own, with a program in the place of Bazel.
"""

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

TREE = os.path.dirname(os.path.realpath("WORKSPACE"))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TREE, "tools", "mutating"))
import campaign  # noqa: E402
import drawing  # noqa: E402

SOURCE = """// The lesser of both, if (it) has one < two.
#include "common/lib.h"
int Least(int one, int two) {
  if (one < two) return one;
  Note("one < two", 7);
  count_ = 3;
  return Pair(one, two);
}
"""

# Stands for Bazel. A test of the file's own folder fails if the comparison has changed, another one if the constant
# has, and what lacks the statement does not compile. It writes each call down.
BAZEL = """#!/usr/bin/env python3
import sys
with open("common/lib.cc") as file:
    text = file.read()
with open("%(log)s", "a") as log:
    print(*sys.argv[1:], file=log)
if sys.argv[1] == "query":
    print("//tests/common:lib_test\\n//tests/server:far_test" if "rdeps" in sys.argv[2] else "//common:lib.cc")
    sys.exit(0)
if "count_" not in text:
    sys.exit(1)
if "//tests/common:lib_test" in sys.argv and "if (one < two)" not in text:
    print("//tests/common:lib_test   FAILED in 0.1s")
    sys.exit(3)
if "//tests/server:far_test" in sys.argv and "count_ = 3" not in text:
    print("//tests/server:far_test   FAILED in 0.1s")
    sys.exit(3)
"""


def tool_of(tree):
    """The module that is the tool itself: it has no ending."""
    loader = SourceFileLoader("mutate", os.path.join(tree, "tools/mutate"))
    tool = module_from_spec(spec_from_loader("mutate", loader))
    loader.exec_module(tool)
    return tool


def changes(text):
    return [(mutant.kind, mutant.line, mutant.after) for mutant in drawing.mutants_of("common/lib.cc", text)]


class DrawingTest(unittest.TestCase):
    def test_changes_conditions_bounds_constants_statements_and_arguments(self):
        self.assertEqual(changes(SOURCE), [
            ("condition", 4, "if (!(one < two)) return one;"),
            ("off by one", 4, "if (one <= two) return one;"),
            ("statement", 5, ";"),
            ("constant", 5, 'Note("one < two", 8);'),
            ("statement", 6, ";"),
            ("constant", 6, "count_ = 4;"),
            ("arguments", 7, "return Pair(two, one);"),
        ])

    def test_negates_only_the_condition_after_an_initializer(self):
        self.assertIn(("condition", 1, "if (auto found = Find(); !(found.ok())) {"),
                      changes("if (auto found = Find(); found.ok()) {\n"))

    def test_leaves_declarations_and_jumps(self):
        self.assertNotIn("statement", [kind for kind, _, _ in changes("  const int a = F(b);\n  return a;\n  break;\n")])

    def test_the_same_seed_draws_the_same_and_more_of_it_begin_with_them(self):
        sources = [("a.cc", SOURCE), ("b.cc", SOURCE)]
        few = drawing.draw(sources, 5, 4)
        self.assertEqual(few, drawing.draw(list(reversed(sources)), 5, 4))
        self.assertEqual(few, drawing.draw(sources, 5, 9)[:4])
        self.assertNotEqual(few, drawing.draw(sources, 6, 4))

    def test_a_mutant_keeps_its_id_when_other_lines_change_and_each_has_its_own(self):
        ids = [mutant.id for mutant in drawing.mutants_of("a.cc", SOURCE)]
        self.assertEqual(ids, [mutant.id for mutant in drawing.mutants_of("a.cc", "// More.\n\n" + SOURCE)])
        twice = [mutant.id for mutant in drawing.mutants_of("a.cc", SOURCE + SOURCE)]
        self.assertEqual(len(set(twice)), 2 * len(ids))


class CampaignTest(unittest.TestCase):
    def setUp(self):
        place = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, place)
        self.root, self.scratch = os.path.join(place, "root"), os.path.join(place, "scratch")
        self.log, self.state = os.path.join(place, "log"), os.path.join(place, "state.jsonl")
        for path, text in (("common/lib.cc", SOURCE), (".gitignore", "/built\n"), ("built", "an output\n"),
                           ("tools/mutating/equivalent.txt", "# None.\n")):
            self.write(path, text)
        shutil.copy(os.path.join(TREE, "tools/mutate"), os.path.join(self.root, "tools"))
        for name in ("campaign.py", "drawing.py"):
            shutil.copy(os.path.join(TREE, "tools/mutating", name), os.path.join(self.root, "tools/mutating"))
        subprocess.run(["git", "init", "-q", self.root], check=True)
        programs = os.path.join(place, "bin")
        os.makedirs(programs)
        with open(os.path.join(programs, "bazel"), "w", encoding="utf-8") as file:
            file.write(BAZEL % {"log": self.log})
        os.chmod(os.path.join(programs, "bazel"), 0o755)
        path = os.environ["PATH"]
        os.environ["PATH"] = programs + ":" + path
        self.addCleanup(os.environ.__setitem__, "PATH", path)

    def write(self, path, text):
        whole = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w", encoding="utf-8") as file:
            file.write(text)

    def mutate(self, *arguments):
        """Runs the tool in the small tree; returns its exit status and what it printed."""
        tool = tool_of(self.root)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            status = tool.main(["--scratch=" + self.scratch, "--state=" + self.state, "common", *arguments])
        return status, printed.getvalue()

    def calls(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as file:
            return [line for line in file if line.startswith("test")]

    def tree(self):
        return {path: campaign.bytes_of(os.path.join(self.root, path)) for path in campaign.tracked_files(self.root)}

    def test_tells_what_became_of_each_mutant_and_leaves_the_checkout_alone(self):
        before = self.tree()
        status, printed = self.mutate("--mutants=100")
        self.assertEqual(status, 1, printed)
        self.assertIn("3 killed, 3 survived, 0 equivalent, 1 did not compile; killed of those that could be: 50.0 %",
                      printed)
        self.assertIn("  is   return Pair(two, one);", printed)
        self.assertIn("count_ = 4;  //tests/server:far_test", printed)
        self.assertIn("if (one <= two) return one;  //tests/common:lib_test", printed)
        self.assertEqual(self.tree(), before)
        self.assertEqual(campaign.bytes_of(os.path.join(self.scratch, "common/lib.cc")).decode(), SOURCE)
        self.assertFalse(os.path.exists(os.path.join(self.scratch, "built")))

    def test_plays_near_tests_only_if_it_is_told_to(self):
        _, printed = self.mutate("--mutants=100", "--near")
        self.assertIn("2 killed, 4 survived", printed)
        self.assertFalse([call for call in self.calls() if "far_test" in call])

    def test_goes_on_where_it_was(self):
        self.mutate("--mutants=3")
        with open(self.state, "a", encoding="utf-8") as file:
            file.write('{"id": "cut o')
        played = len(self.calls())
        self.mutate("--mutants=3")
        self.assertEqual(len(self.calls()), played)
        _, printed = self.mutate("--mutants=100")
        self.assertIn("3 killed, 3 survived", printed)
        self.assertNotIn("1 of 7", printed)
        self.assertEqual(len(campaign.State(self.state).results), 7)

    def test_tells_what_it_knows_when_it_is_stopped(self):
        tool = tool_of(self.root)
        self.addCleanup(setattr, campaign, "play", campaign.play)
        tool.campaign.play = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            status = tool.main(["--scratch=" + self.scratch, "--state=" + self.state, "common"])
        self.assertEqual(status, 130)
        self.assertIn("0 killed, 0 survived", printed.getvalue())
        self.assertIn("the same command goes on from here", printed.getvalue())

    def test_plays_survivors_again_if_it_is_told_to(self):
        self.mutate("--mutants=100")
        played = len(self.calls())
        _, printed = self.mutate("--mutants=100", "--again")
        self.assertEqual(printed.count(" of 7  survived"), 3)
        self.assertIn("3 killed, 3 survived", printed)
        self.assertEqual(len(self.calls()) - played, 2 + 3 * 2)  # without a mutant, then three survivors

    def test_counts_what_was_reviewed_as_equivalent(self):
        survivors = [mutant for mutant in drawing.mutants_of("common/lib.cc", SOURCE) if mutant.line in (5, 7)]
        self.write("tools/mutating/equivalent.txt", "# Why.\n" + "".join(f"{each.id} as good\n" for each in survivors))
        status, printed = self.mutate("--mutants=100")
        self.assertEqual(status, 0, printed)
        self.assertIn("3 killed, 0 survived, 3 equivalent", printed)

    def test_refuses_the_checkout_as_its_copy(self):
        status, printed = self.mutate("--scratch=" + self.root)
        self.assertEqual(status, 3)
        self.assertIn("would be the checkout itself", printed)

    def test_says_which_test_fails_without_a_mutant(self):
        self.write("common/lib.cc", SOURCE.replace("one < two", "one <= two"))
        status, printed = self.mutate("--mutants=1")
        self.assertEqual(status, 3)
        self.assertIn("without any mutant a test of common/lib.cc fails: //tests/common:lib_test", printed)

    def test_refuses_no_mutants_and_folders_without_sources(self):
        with self.assertRaises(SystemExit) as exit_of, contextlib.redirect_stderr(io.StringIO()):
            self.mutate("--mutants=0")
        self.assertEqual(exit_of.exception.code, 2)
        tool = tool_of(self.root)
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(tool.main(["--list", "docs"]), 2)


class EquivalentTest(unittest.TestCase):
    def test_each_mutant_on_the_reviewed_list_still_exists(self):
        tool = tool_of(TREE)
        files = tool.sources(TREE, ["server", "worker", "common"], headers=True)
        existing = {mutant.id for path, text in files for mutant in drawing.mutants_of(path, text)}
        listed = tool.read_equivalent(os.path.join(TREE, "tools/mutating/equivalent.txt"))
        self.assertEqual(listed - existing, set(), "review these again, or remove them from the list")


if __name__ == "__main__":
    unittest.main()
