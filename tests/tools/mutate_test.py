#!/usr/bin/env python3
"""Tests tools/mutate: what it draws, how it switches, that it leaves the checkout alone, and that it goes on where it was.

It plays mutants in a small tree of its own, with a program in the place of Bazel that calls the compiler.
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
import running  # noqa: E402
import switching  # noqa: E402

SOURCE = """// The lesser of both, if (it) has one < two.
#include "common/lib.h"
int Least(int one, int two) {
  if (one < two) return one;
  Note("one < two", 7);
  count_ = 3;
  return Pair(one, two);
}
"""

# What the small tree's tests play. Each line has one place to change, but for the last, which has no test.
LIBRARY = """#include "common/lib.h"
int room[4];
constexpr int kMost = 3;
int calls;
bool Enough(int number) { return number > kMost; }
void Count() {
  calls += number_of_calls;
}
int Less(int a, int b) { return Minus(a, b); }
bool Unused(bool it, bool other) { return it && other; }
"""
HEADER = """extern int calls;
const int number_of_calls = 5;
static_assert(sizeof(int[4]) == 4 * sizeof(int));
inline int Minus(int a, int b) { return a - b; }
bool Enough(int number);
void Count();
int Less(int a, int b);
"""
# Looks like GoogleTest to those who start it.
CASES = """#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "common/lib.h"
bool Case(const char* name, bool (*body)()) {
  const char* filter = std::getenv("GTEST_FILTER");
  const size_t suite = std::strchr(name, '.') - name;
  if (filter != nullptr && std::strncmp(filter, name, suite) != 0) return true;
  std::printf("[ RUN      ] %s\\n", name);
  const bool passes = body();
  std::printf("[ %s ] %s (0 ms)\\n", passes ? "      OK" : " FAILED ", name);
  return passes;
}
"""
TESTS = {
    "tests/common/lib_test.cc": CASES + """int main() {
  const bool bound = Case("Bounds.Hold", [] { return Enough(5) && !Enough(2); });
  return bound & Case("Counts.Once", [] { Count(); return calls >= 0; }) ? 0 : 1;
}
""",
    "tests/system/far_test.cc": CASES + """#include <sys/resource.h>
int main() {
  const rlimit no_descriptor = {0, 0};
  setrlimit(RLIMIT_NOFILE, &no_descriptor);
  return Case("Far.Takes", [] { return Less(5, 2) == 3; }) ? 0 : 1;
}
""",
}

# Stands for Bazel: it knows two tests, and builds them. It writes each call down.
BAZEL = """#!/usr/bin/env python3
import json, os, subprocess, sys
TESTS = ["tests/common/lib_test", "tests/system/far_test"]
LABELS = ["//tests/common:lib_test", "//tests/system:far_test"]
with open("%(log)s", "a") as log:
    print(*sys.argv[1:], file=log)
if sys.argv[-1] == "--output=label":
    print(*LABELS, sep="\\n")
elif sys.argv[-1] == "--output=xml":
    print("<query><rule name='%%s'/><rule name='%%s'/></query>" %% tuple(LABELS))
elif sys.argv[1] == "aquery":
    print(json.dumps({"targets": [{"id": at, "label": label} for at, label in enumerate(LABELS)],
                      "actions": [{"targetId": at, "arguments": ["setup", test]} for at, test in enumerate(TESTS)]}))
elif sys.argv[1] == "build":
    failed = 0
    if not os.path.exists("bazel-bin"):
        os.makedirs("%(outputs)s")
        os.symlink("%(outputs)s", "bazel-bin")
    for test in TESTS:
        sources = "".join(open(path).read() for path in ("common/lib.h", "common/lib.cc", test + ".cc"))
        made = "bazel-bin/" + test + ".runfiles/sluice/" + test
        os.makedirs(os.path.dirname(made), exist_ok=True)
        if os.path.exists(made + ".of") and open(made + ".of").read() == sources:
            continue
        failed |= subprocess.call(["g++", "-std=c++17", "-I.", "-w", "-o", made, "common/lib.cc", test + ".cc"])
        open(made + ".of", "w").write(sources)
    sys.exit(1 if failed else 0)
"""


def tool_of(tree):
    """The module that is the tool itself: it has no ending."""
    loader = SourceFileLoader("mutate", os.path.join(tree, "tools/mutate"))
    tool = module_from_spec(spec_from_loader("mutate", loader))
    loader.exec_module(tool)
    return tool


def has_ended(process):
    """Waits until it has: until the test's own time is over, if it does not."""
    while True:
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8") as stat:
                if stat.read().split()[2] == "Z":
                    return True
        except OSError:
            return True


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

    def test_leaves_lines_of_the_log_and_what_continues_another_line(self):
        self.assertEqual(changes('  if (a) LOG(WARNING) << 1 + b;\n')[1:], [])
        self.assertEqual(changes("  return a ||\n         b.c(d);\n"), [])

    def test_knows_strings_and_numbers(self):
        self.assertEqual(changes('int a = F(R"(x > 1 "y" 2)", "3 + 4", \'5\', 1\'000\'000);\n'),
                         [("constant", 1, 'int a = F(R"(x > 1 "y" 2)", "3 + 4", \'5\', 1000001);')])

    def test_leaves_declarations_and_jumps(self):
        self.assertNotIn("statement", [kind for kind, _, _ in changes("  const int a = F(b);\n  return a;\n  break;\n")])

    def test_the_same_seed_draws_the_same_and_more_of_it_begin_with_them(self):
        sources = [("a.cc", SOURCE), ("b.cc", SOURCE)]
        few = drawing.draw(sources, 5, 4)
        self.assertEqual(few, drawing.draw(list(reversed(sources)), 5, 4))
        self.assertEqual(few, drawing.draw(sources, 5, 9)[:4])
        self.assertNotEqual(few, drawing.draw(sources, 6, 4))

    def test_a_change_elsewhere_leaves_what_is_drawn(self):
        sources = [("a.cc", SOURCE), ("b.cc", SOURCE)]
        before = [mutant.id for mutant in drawing.draw(sources, 5, 4)]
        more = [mutant.id for mutant in drawing.draw([("c.cc", "int a = b - c;\n"), *sources], 5, 5)]
        self.assertLessEqual(set(before), set(more))

    def test_a_mutant_keeps_its_id_when_other_lines_change_and_each_has_its_own(self):
        ids = [mutant.id for mutant in drawing.mutants_of("a.cc", SOURCE)]
        self.assertEqual(ids, [mutant.id for mutant in drawing.mutants_of("a.cc", "// More.\n\n" + SOURCE)])
        twice = [mutant.id for mutant in drawing.mutants_of("a.cc", SOURCE + SOURCE)]
        self.assertEqual(len(set(twice)), 2 * len(ids))


class SwitchingTest(unittest.TestCase):
    def switched(self, text, kind, after=None):
        """The text with the mutant of this kind in it, of which there must be one. It is number 7."""
        mutants = [mutant for mutant in drawing.mutants_of("a.cc", text) if mutant.kind == kind and after in (None, mutant.after)]
        self.assertEqual(len(mutants), 1, mutants)
        file = switching.SwitchedFile("a.cc", text, {7: mutants[0]})
        return file.text.split('#line 1 "a.cc"\n')[1]

    def test_switches_the_smallest_whole_expression(self):
        self.assertEqual(self.switched("const int x = a ? b - c : d;\n", "sign"),
                         "const int x = a ? (SluiceMutant(7) ? (b + c) : (b - c)) : d;\n")
        self.assertEqual(self.switched("if (a) return x::F(b, c) - d;\n", "arguments"),
                         "if (a) return (SluiceMutant(7) ? (x::F(c, b) - d) : (x::F(b, c) - d));\n")
        self.assertEqual(self.switched('F("x, y" + z, 0.5);\n', "sign"),
                         'F((SluiceMutant(7) ? ("x, y" - z) : ("x, y" + z)), 0.5);\n')
        self.assertEqual(self.switched("}\na.b()->c[d && e] = f;\n", "condition"),
                         "}\na.b()->c[(SluiceMutant(7) ? (d || e) : (d && e))] = f;\n")

    def test_negates_what_only_converts_to_bool(self):
        self.assertEqual(self.switched("if (pointer) return;\n", "condition"),
                         "if ((SluiceMutant(7) ? static_cast<bool>(!(pointer)) : static_cast<bool>(pointer))) return;\n")

    def test_leaves_an_else_where_it_belongs(self):
        self.assertEqual(self.switched("if (a) F();\nelse G(b);\n", "statement", "if (a) ;"),
                         "if (a) { if (!SluiceMutant(7)) F(); }\nelse G(b);\n")

    def test_makes_a_function_of_a_constant(self):
        self.assertEqual(self.switched("static constexpr int kMost = 3;\nint a = kMost;\n", "constant"),
                         "const auto kMost = []() -> int { return (SluiceMutant(7) ? (4) : (3)); };\n"
                         "#define kMost kMost()\n\nint a = kMost;\n\n#undef kMost\n")

    def test_all_mutants_of_a_place_find_room_in_it(self):
        text = "if (a < b - 1) F(c);\n"
        numbered = dict(enumerate(drawing.mutants_of("a.cc", text)))
        self.assertEqual([mutant.after for mutant in numbered.values()],
                         ["if (!(a < b - 1)) F(c);", "if (a <= b - 1) F(c);", "if (a < b + 1) F(c);",
                          "if (a < b - 2) F(c);", "if (a < b - 1) ;"])
        changed = switching.SwitchedFile("a.cc", text, numbered).text
        self.assertIn("SluiceMutant(1) ? static_cast<bool>(a <= b - 1) : SluiceMutant(2) ? static_cast<bool>(a < b + 1) : "
                      "static_cast<bool>(a < b - (SluiceMutant(3) ? (2) : (1)))", changed)

    def test_blames_the_mutants_at_the_places_of_the_errors(self):
        text = "int a[3];\nint b = c - d;\n"
        numbered = dict(enumerate(drawing.mutants_of("a.cc", text)))
        files = switching.switch({"a.cc": text}, numbered)
        self.assertEqual(switching.blamed(files, "a.cc:1:8: error: no constant\na.cc:2:20: note: also"), {0})
        self.assertEqual(switching.blamed(files, "b.h:1:1: error: broken\na.cc:2:20: note: from here"), {1})
        self.assertEqual(switching.blamed(files, "c.cc:1:1: error: this is nobody's"), set())

    def test_blames_the_mutant_behind_an_error_in_a_library(self):
        text = "int a[3];\n\nvoid F() { rows.emplace(name, row); }\n"
        numbered = dict(enumerate(drawing.mutants_of("common/a.cc", text)))
        files = switching.switch({"common/a.cc": text}, numbered)
        swapped = {number for number, mutant in numbered.items() if mutant.kind == "arguments"}
        self.assertLess(swapped, set(numbered))
        for said in (GCC_IN_A_LIBRARY, CLANG_IN_A_LIBRARY):
            self.assertEqual(switching.blamed(files, said), swapped, said)
        # The place on the way there may be the mutant's line, or only its file.
        self.assertEqual(switching.blamed(files, GCC_IN_A_LIBRARY.replace(":3:44:", ":1:1:")), {0})
        self.assertEqual(switching.blamed(files, GCC_IN_A_LIBRARY.replace(":3:44:", ":2:1:")), set(numbered))
        self.assertEqual(switching.blamed(files, GCC_IN_A_LIBRARY.replace("common/a.cc", "common/b.cc")), set())

    def test_blames_all_mutants_of_a_header_through_which_a_broken_one_is_included(self):
        files = switching.switch({"a.h": "int a = b - c;\n"}, dict(enumerate(drawing.mutants_of("a.h", "int a = b - c;\n"))))
        self.assertEqual(switching.blamed(files, "In file included from ./a.h:3,\n                 from a.cc:1:\n"
                                          "/usr/include/x.h:7:1: error: broken\n"), {0})
        self.assertEqual(switching.blamed(files, "In file included from ./a.h:3:\nd.h:1:1: warning: odd\nd.h:1:1: note: here\n"), set())

    def test_each_of_two_errors_has_its_own_mutant(self):
        text = "int a[3];\nint b = c - d;\n"
        files = switching.switch({"a.cc": text}, dict(enumerate(drawing.mutants_of("a.cc", text))))
        self.assertEqual(switching.blamed(files, "a.cc:1:8: error: no constant\nlib.h: In instantiation of 'A':\n"
                                          "a.cc:2:20:   required from here\nlib.h:1:1: error: broken"), {0, 1})


# What gcc 12 and clang 14 said of rows.emplace(row, name), without most of the way through Abseil and the standard library.
GCC_IN_A_LIBRARY = """In file included from /usr/include/c++/12/memory:64,
                 from ./common/a.h:17,
                 from common/a.cc:1:
/usr/include/c++/12/bits/new_allocator.h: In instantiation of ‘void std::__new_allocator<_Tp>::construct(_Up*, _Args&& ...)’:
/usr/include/c++/12/bits/alloc_traits.h:516:17:   required from ‘static void construct(allocator_type&, _Up*, _Args&& ...)’
/usr/include/absl/container/internal/raw_hash_set.h:1522:28:   required from ‘std::pair<iterator, bool> emplace(Args&& ...)’
common/a.cc:3:44:   required from here
/usr/include/c++/12/bits/new_allocator.h:175:11: error: no matching function for call to ‘pair(const int&, string_view&)’
  175 |         { ::new((void *)__p) _Up(std::forward<_Args>(__args)...); }
      |           ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
/usr/include/c++/12/bits/stl_pair.h:563:28: note: candidate: ‘template<class _U1, class _U2> pair(pair<_U1, _U2>&&)’
/usr/include/c++/12/bits/stl_pair.h:563:28: note:   template argument deduction/substitution failed:
/usr/include/c++/12/bits/stl_pair.h:542:38: error: no type named ‘type’ in ‘struct std::enable_if<false, bool>’
"""
CLANG_IN_A_LIBRARY = """In file included from common/a.cc:1:
In file included from ./common/a.h:17:
/usr/bin/../include/c++/12/bits/new_allocator.h:175:23: error: no matching constructor for initialization of 'std::pair'
        { ::new((void *)__p) _Up(std::forward<_Args>(__args)...); }
                             ^   ~~~~~~~~~~~~~~~~~~~~~~~~~~~
/usr/include/absl/container/internal/raw_hash_set.h:1522:19: note: in instantiation of function template specialization 'construct'
common/a.cc:3:44: note: in instantiation of function template specialization 'raw_hash_set::emplace' requested here
/usr/bin/../include/c++/12/bits/stl_pair.h:411:17: note: candidate constructor template not viable: no known conversion
1 error generated.
"""


class NoticedTest(unittest.TestCase):
    """When a test has noticed a mutant. The runner plays what each test says: True if the run passes."""

    def killer(self, *passing):
        mutant = drawing.mutants_of("common/lib.cc", SOURCE)[0]
        runs = iter(passing)
        self.played = []
        outer = self

        class FakeRunner:
            def digest(self, _):
                return "same"

            def run(self, target, cases, limit, variables):
                outer.played.append((target.label, cases, limit, variables.get("SLUICE_MUTANT")))
                passes = next(runs)
                return running.Run(passes, 1.0, {"A.B": (0, True), "A.C": (1, passes)}, "")

        place = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, place)
        notes = campaign.Lines(os.path.join(place, "tests"), "test")
        targets = [running.Target(label, [], {}) for label in (
            "//tests/common:slow", "//tests/common:b", "//tests/server:a", "//tests/common:quick", "//tests/common:slower")]
        for label, seconds, ids in (("//tests/common:slow", 9, [mutant.id]), ("//tests/common:b", 2, []),
                                    ("//tests/server:a", 2, [mutant.id]), ("//tests/common:quick", 1, [mutant.id]),
                                    ("//tests/common:slower", 10, [mutant.id])):
            notes.note({"test": label, "digest": "same", "reached": {"A.*": [seconds, ids], "D.*": [1, []]}})
        return campaign.Tests(FakeRunner(), targets, {7: mutant}, notes).killer(mutant, targets, 2, 10)

    def test_fails_with_it_passes_without_it_and_fails_again(self):
        self.assertEqual(self.killer(False, True, False), "//tests/common:slow A.C")
        self.assertEqual(self.played, [("//tests/common:slow", ["A.*"], 32, "7"), ("//tests/common:slow", ["A.C"], 32, None),
                                       ("//tests/common:slow", ["A.C"], 32, "7")])

    def test_another_test_is_asked_if_one_fails_without_the_mutant(self):
        self.assertEqual(self.killer(False, False, False, False, False, True, False), "//tests/server:a A.C")

    def test_a_busy_machine_gets_three_chances(self):
        self.assertEqual(self.killer(False, False, False, True, False), "//tests/common:slow A.C")

    def test_another_test_is_asked_if_one_fails_only_once(self):
        self.assertEqual(self.killer(False, True, True, True), "")

    def test_only_the_tests_that_reach_it_in_that_time_are_asked(self):
        self.assertEqual(self.killer(True, True), "")
        self.assertEqual([label for label, _, _, _ in self.played], ["//tests/common:slow", "//tests/server:a"])


class RunnerTest(unittest.TestCase):
    def run_script(self, script, limit=60):
        place = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, place)
        path = os.path.join(place, "bazel-bin/tests/a.runfiles/sluice/script")
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)
        target = running.Target("//tests:a", ["script", "word"], {"ASKED": "for"})
        return running.Runner(place).run(target, ["A.B", "A.C"], limit, {"SLUICE_MUTANT": "7"})

    def test_runs_a_test_as_bazel_does(self):
        run = self.run_script('echo "$1 $ASKED $GTEST_FILTER $SLUICE_MUTANT $(basename "$PWD") $TEST_SRCDIR/$TEST_WORKSPACE"')
        self.assertTrue(run.passed)
        self.assertIn("word for A.B:A.C 7 sluice ", run.output)

    def test_knows_the_cases(self):
        run = self.run_script("""echo '[ RUN      ] A.B'; echo '[       OK ] A.B (20 ms)'
echo '[ RUN      ] A.C/0'; echo '[  FAILED  ] A.C/0, where GetParam() = 3 (1000 ms)'; echo '[ RUN      ] A.D'; kill -9 $$""")
        self.assertFalse(run.passed)
        self.assertEqual(run.cases, {"A.B": (0.02, True), "A.C/0": (1, False), "A.D": (0, False)})

    def test_ends_a_test_at_its_limit_and_whatever_it_has_started(self):
        run = self.run_script("setsid sleep 1000 & echo $!; wait", limit=1)
        self.assertFalse(run.passed)
        self.assertTrue(has_ended(int(run.output)))


class CampaignTest(unittest.TestCase):
    def setUp(self):
        place = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, place)
        self.root, self.scratch = os.path.join(place, "root"), os.path.join(place, "scratch")
        self.log, self.state = os.path.join(place, "log"), os.path.join(place, "state.jsonl")
        for path, text in (("common/lib.cc", LIBRARY), ("common/lib.h", HEADER), (".gitignore", "/built\n"),
                           ("built", "an output\n"), ("tools/mutating/equivalent.txt", "# None.\n"), *TESTS.items()):
            self.write(path, text)
        shutil.copy(os.path.join(TREE, "tools/mutate"), os.path.join(self.root, "tools"))
        for name in ("campaign.py", "drawing.py", "running.py", "switching.py"):
            shutil.copy(os.path.join(TREE, "tools/mutating", name), os.path.join(self.root, "tools/mutating"))
        subprocess.run(["git", "init", "-q", self.root], check=True)
        programs = os.path.join(place, "bin")
        os.makedirs(programs)
        with open(os.path.join(programs, "bazel"), "w", encoding="utf-8") as file:
            file.write(BAZEL % {"log": self.log, "outputs": os.path.join(place, "outputs")})
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
            status = tool.main(["--scratch=" + self.scratch, "--state=" + self.state, "--mutants=100", *arguments, "common"])
        return status, printed.getvalue()

    def builds(self):
        with open(self.log, encoding="utf-8") as file:
            return len([line for line in file if line.startswith("build")])

    def tree(self):
        return {path: campaign.bytes_of(os.path.join(self.root, path)) for path in campaign.tracked_files(self.root)}

    def verdicts(self):
        return {result["after"]: (result["verdict"], result["by"]) for result in campaign.State(self.state).found.values()}

    def test_tells_what_became_of_each_mutant_and_leaves_the_checkout_alone(self):
        before = self.tree()
        status, printed = self.mutate()
        self.assertEqual(status, 1, printed)
        self.assertEqual(self.verdicts(), {
            "int room[5];": ("cannot be built", ""),
            "constexpr int kMost = 4;": ("survived", ""),
            "bool Enough(int number) { return number >= kMost; }": ("survived", ""),
            ";": ("survived", ""),
            "int Less(int a, int b) { return Minus(b, a); }": ("killed", "//tests/system:far_test Far.Takes"),
            "bool Unused(bool it, bool other) { return it || other; }": ("survived", "no test reaches it"),
        })
        self.assertIn("1 killed, 4 survived, 0 equivalent, 1 cannot be built; killed of those that could be: 20.0 %", printed)
        self.assertIn("  was  constexpr int kMost = 3;\n  is   constexpr int kMost = 4;", printed)
        self.assertEqual(self.tree(), before)
        self.assertFalse(os.path.exists(os.path.join(self.scratch, "built")))
        self.assertEqual(self.builds(), 2)  # the second without what does not compile

    def test_a_mutant_that_the_standard_library_refuses_cannot_be_built(self):
        self.write("common/lib.cc", LIBRARY + "#include <map>\n#include <string>\nstd::map<std::string, int> rows;\n"
                   "void Note(const char* name, int row) { rows.emplace(name, row); }\n")
        _, printed = self.mutate()
        self.assertEqual(self.verdicts()["void Note(const char* name, int row) { rows.emplace(row, name); }"], ("cannot be built", ""))
        self.assertIn("2 cannot be built", printed)

    def test_plays_near_tests_only_if_it_is_told_to(self):
        self.write("tests/common/lib_test.cc", TESTS["tests/common/lib_test.cc"].replace("calls >= 0", "calls == 5"))
        status, printed = self.mutate("--near")
        self.assertEqual(status, 1)
        self.assertIn("1 killed, 4 survived", printed)
        self.assertEqual(self.verdicts()[";"], ("killed", "//tests/common:lib_test Counts.Once"))
        _, printed = self.mutate()
        self.assertIn("2 killed, 3 survived", printed)

    def test_asks_only_the_suites_of_a_slow_test_that_reach_the_mutant(self):
        self.addCleanup(setattr, campaign, "_SLOW", campaign._SLOW)
        tool = tool_of(self.root)
        tool.campaign._SLOW = -1
        self.mutate()
        suites = campaign.Lines(self.state + ".tests", "test").found["//tests/common:lib_test"]["reached"]
        reached = {suite: len(ids) for suite, (_, ids) in suites.items()}
        self.assertEqual(reached, {"Bounds.*": 2, "Counts.*": 1})

    def test_goes_on_where_it_was(self):
        self.mutate("--mutants=2")
        with open(self.state, "a", encoding="utf-8") as file:
            file.write('{"id": "cut o')
        before = self.verdicts()
        _, printed = self.mutate("--mutants=2")
        self.assertNotIn(" of 2  ", printed)
        self.assertIn("every test is known", printed)
        _, printed = self.mutate()
        self.assertIn("1 killed, 4 survived, 0 equivalent, 1 cannot be built", printed)
        self.assertEqual(len(self.verdicts()), 6)
        self.assertEqual(before.items() & self.verdicts().items(), before.items())

    def test_tells_what_it_knows_when_it_is_stopped(self):
        tool = tool_of(self.root)
        self.addCleanup(setattr, campaign.Tests, "killer", campaign.Tests.killer)

        def interrupted(*_):
            raise KeyboardInterrupt
        campaign.Tests.killer = interrupted
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            status = tool.main(["--scratch=" + self.scratch, "--state=" + self.state, "common"])
        self.assertEqual(status, 130)
        self.assertIn("0 killed, 0 survived", printed.getvalue())
        self.assertIn("killed of those that could be: none; 5 are not decided yet", printed.getvalue())
        self.assertIn("the same command goes on from here", printed.getvalue())

    def test_plays_survivors_again_if_it_is_told_to(self):
        self.mutate()
        self.write("tests/common/lib_test.cc", TESTS["tests/common/lib_test.cc"].replace("Enough(5)", "Enough(4)"))
        _, printed = self.mutate()
        self.assertIn("1 killed, 4 survived", printed)
        _, printed = self.mutate("--again")
        self.assertIn("2 killed, 3 survived", printed)
        self.assertEqual(self.verdicts()["constexpr int kMost = 4;"], ("killed", "//tests/common:lib_test Bounds.Hold"))

    def test_counts_what_was_reviewed_as_equivalent(self):
        survivors = [mutant for mutant in drawing.mutants_of("common/lib.cc", LIBRARY) if mutant.kind != "arguments"]
        self.write("tools/mutating/equivalent.txt", "# Why.\n" + "".join(f"{each.id} as good\n" for each in survivors))
        status, printed = self.mutate()
        self.assertEqual(status, 0, printed)
        self.assertIn("1 killed, 0 survived, 5 equivalent", printed)

    def test_refuses_the_checkout_as_its_copy(self):
        status, printed = self.mutate("--scratch=" + self.root)
        self.assertEqual(status, 3)
        self.assertIn("would be the checkout itself", printed)

    def test_says_which_test_fails_without_a_mutant_unless_it_is_left_out(self):
        self.write("tests/system/far_test.cc", TESTS["tests/system/far_test.cc"].replace("== 3", "== 4"))
        status, printed = self.mutate()
        self.assertEqual(status, 3)
        self.assertIn("without any mutant //tests/system:far_test fails: [ RUN      ] Far.Takes", printed)

    def test_shows_why_the_copy_does_not_build_without_the_mutants(self):
        self.write("tests/system/far_test.cc", "int main() { return nothing; }\n")
        status, printed = self.mutate()
        self.assertEqual(status, 3)
        self.assertIn("does not build, and no mutant is to blame", printed)
        self.assertIn("tests/system/far_test.cc:1:21: error", printed)

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
