#!/usr/bin/env python3
"""The guides: their programs train, and the errors that they explain are those of the sources."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

import sentences

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "testing"))
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402
from ports import free_port  # noqa: E402

TREE = os.path.dirname(os.path.realpath("WORKSPACE"))
GUIDES = os.path.join(TREE, "worker", "guides")
PYTHON = "/usr/bin/python3"  # it has the distribution's torch
SERVER = os.path.abspath("server/sluice_server")
EXAMPLE = os.path.abspath("worker/torch/examples/example")
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.path.join(TREE, "worker", "python"),
               "PYTHONDONTWRITEBYTECODE": "1", "SLUICE_LIBRARY": os.path.abspath("worker/c/libsluice.so.0")}
# The pages, and how many programs in Python each has.
PROGRAMS = {"python.md": 1, "from_ddp.md": 2, "from_pytorch_rpc.md": 3}


def read(*path):
    with open(os.path.join(TREE, *path), encoding="utf-8") as file:
        return file.read()


def programs_of(page, language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```$", read("worker", "guides", page), re.M | re.S)


class SentencesTest(unittest.TestCase):
    """Each sentence in the first column of a table of errors stands in the sources."""

    @classmethod
    def setUpClass(cls):
        cls.statements = []
        for top in ("common", "server", "worker"):
            for folder, _, names in os.walk(os.path.join(TREE, top)):
                for name in names:
                    path = os.path.relpath(os.path.join(folder, name), TREE)
                    if name.endswith((".cc", ".h")):
                        cls.statements += sentences.of_cpp(read(path))
                    elif name.endswith(".py"):
                        cls.statements += sentences.of_python(read(path))

    def stands(self, sentence):
        return any(sentences.says(statement, sentence) for statement in self.statements)

    @staticmethod
    def quoted():
        """The sentences of troubleshooting.md, from the tables whose first column has this title."""
        found = []
        for table in re.findall(r"^\| the sentence \|.*\n(?:\|.*\n)+", read("worker", "guides", "troubleshooting.md"), re.M):
            for row in table.splitlines()[2:]:
                found += re.findall(r"`([^`]+)`", row.split(" | ")[0])
        return found

    def test_each_quoted_sentence_is_one_of_a_program(self):
        quoted = self.quoted()
        self.assertGreater(len(quoted), 40)
        self.assertEqual([sentence for sentence in quoted if not self.stands(sentence)], [])

    def test_each_quoted_sentence_says_enough_to_be_found(self):
        short = [sentence for sentence in self.quoted() if max(map(len, sentence.split("…"))) < 12]
        self.assertEqual(short, [])

    def test_a_sentence_that_no_program_says_is_noticed(self):
        self.assertTrue(self.stands("no server: give --server=host:port, or launch with mpirun, where rank 0 is the server"))
        self.assertFalse(self.stands("no server: give --server=host:port, or launch with srun, where rank 0 is the server"))
        self.assertTrue(self.stands("the server has … workers, its limit"))
        self.assertFalse(self.stands("the server has 1024 workers, its limit"))
        self.assertFalse(self.stands("its limit … the server has"))

    def test_literals_are_joined_as_the_program_joins_them(self):
        text = ('Say(StrCat("a \\"b\\"; ", "c",\n  Name(x), " d"  // "not said"\n  " e")); LOG(INFO) << "f " << 2 << " g";\n'
                'Format("%s is %.3g %% of", n);')
        gap = sentences.GAP
        self.assertEqual(sentences.of_cpp(text), [f'a "b"; c{gap} d e', f"f {gap} g", f"{gap} is {gap} % of"])
        self.assertIn(f"a {gap} b c", sentences.of_python('say(f"a {x} b "\n    "c")'))


class ProgramsTest(unittest.TestCase):
    """Each program of the guides runs as the page says."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def program(self, page, which):
        path = os.path.join(self.folder, "program.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(programs_of(page)[which])
        return [PYTHON, path]

    def run_in_folder(self, words, **environment):
        ended = subprocess.run(words, env={**ENVIRONMENT, **environment}, cwd=self.folder, capture_output=True, text=True,
                               check=False, timeout=200)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return ended.stdout

    def launch(self, ranks, words):
        return self.run_in_folder(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), *words],
                                  MASTER_PORT=str(free_port()))

    def accuracy(self, said):
        return float(re.search(r"accuracy ([0-9.]+)", said).group(1))

    def test_the_pages_have_no_other_programs(self):
        found = {page: len(programs_of(page)) for page in sorted(os.listdir(GUIDES))}
        self.assertEqual({page: count for page, count in found.items() if count}, PROGRAMS)

    def test_the_quick_start_in_python_learns_and_counts_as_its_page_shows(self):
        ring = self.program("python.md", 0)
        said = self.launch(4, ring)
        self.assertGreater(self.accuracy(said), 0.9)
        shown = read("worker", "guides", "python.md")
        for line in said.splitlines():
            if re.match(r"  (steps|pushes received|  accepted) ", line):
                self.assertIn(line + "\n", shown)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "ring.pt")))
        self.assertRegex(self.launch(4, [*ring, "--sluice-mode=async", "--sluice-push-encoding=int8"]), r"\n  steps +1500\n")

    def test_the_quick_start_in_python_runs_by_hand(self):
        ring = self.program("python.md", 0)
        server = subprocess.Popen([SERVER, "--listen=127.0.0.1:0", "--workers=2"], env=ENVIRONMENT, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        address = next(re.search(r"listening on ([^\s,]+)", line).group(1) for line in server.stderr if "listening on" in line)
        other = subprocess.Popen([*ring, f"--sluice-server={address}"], env=ENVIRONMENT, cwd=self.folder,
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(other.communicate)
        self.addCleanup(other.kill)
        said = self.run_in_folder(ring, SLUICE_SERVER=address) + other.communicate(timeout=200)[0]
        self.assertGreater(self.accuracy(said), 0.9)
        table, errors = server.communicate(timeout=60)
        self.assertEqual((server.returncode, other.returncode), (0, 0), errors)
        self.assertRegex(table, r"\n  steps +748\n")

    def test_both_programs_of_the_page_on_ddp_learn_the_same_task(self):
        before = self.accuracy(self.launch(3, self.program("from_ddp.md", 0)))
        after = self.accuracy(self.launch(4, self.program("from_ddp.md", 1)))
        self.assertGreater(before, 0.95)
        self.assertGreater(after, 0.95)

    def test_the_programs_of_the_page_on_rpc_learn_the_same_task(self):
        for which in (0, 1, 2):
            said = self.launch(3, self.program("from_pytorch_rpc.md", which))
            losses = [float(loss) for loss in re.findall(r"step \d+, loss ([0-9.]+)", said)]
            self.assertEqual(len(losses), 3, said)
            self.assertLess(losses[-1], 0.2)  # from about 2

    def test_the_quick_start_in_cpp_is_the_example_which_learns(self):
        source = read("worker", "torch", "examples", "example_main.cc")
        shown = programs_of("cpp.md", "cpp")
        self.assertEqual([part in source and "int main(" in part for part in shown], [True])
        losses = [float(loss) for loss in re.findall(r"loss ([0-9.]+)", self.launch(4, [EXAMPLE]))]
        self.assertEqual(len(losses), 3)
        self.assertLess(losses[-1], 0.2)  # from about 0.7


if __name__ == "__main__":
    recorded_tests.main()
