#!/usr/bin/env python3
"""The pages and examples that tools/packaging/install_docs.py copies for machines without this tree."""

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
import broken_links  # noqa: E402
import install_docs  # noqa: E402
import recorded_tests  # noqa: E402


def write(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


class InstallDocsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        self.folder = os.path.join(folder.name, "sluice")

    def install(self, tree):
        os.chdir(tree)
        listed = subprocess.run(["git", "-C", tree, "ls-files"], check=False, capture_output=True, text=True).stdout
        files = listed.splitlines() or [os.path.relpath(os.path.join(place, name), tree)
                                        for place, _, names in os.walk(tree) for name in names]
        return install_docs.install([file for file in files if os.path.exists(file)], self.folder)

    def test_no_link_of_the_installed_pages_is_broken(self):
        self.install(TREE)
        self.assertEqual(broken_links.broken_links(self.folder), [])

    def test_the_guides_the_examples_and_what_the_first_page_links_to_are_there(self):
        copied = self.install(TREE)
        for folder in ("worker/guides", "worker/python/examples", "worker/examples/numpy", "worker/examples/node"):
            here = {f"{folder}/{name}" for name in os.listdir(os.path.join(TREE, folder)) if name[0] not in "._"}
            self.assertEqual(here - copied - {f"{folder}/BUILD.bazel", f"{folder}/node_modules"}, set())
        linked = {page for page in install_docs.targets_of("README.md") if page.endswith(".md")}
        self.assertGreater(len(linked), 30)
        self.assertEqual(linked - copied, {"tests/README.md"})

    def test_no_source_of_a_program_is_there(self):
        sources = {file for file in self.install(TREE) if file.endswith((".cc", ".h", ".bazel", ".bzl"))}
        folders = {os.path.dirname(file) for file in sources}
        self.assertEqual(folders, {"tests/tools/package/torch", "worker/torch/examples"})

    def test_pages_name_programs_as_the_packages_install_them(self):
        of_a_checkout = re.compile(r"bazel-bin/[\w/]*/(sluice_server|sluice_train|sluice_evaluate|sluicectl)\b")
        naming = set()
        for page in self.install(TREE):
            if page.endswith(".md") and "/figures/" not in page:
                naming |= {page} if of_a_checkout.search(read(self.folder, page)) else set()
        # The first page and the guide have both ways; the last one is about a checkout.
        self.assertEqual(naming - {"README.md", "worker/guides/cpp.md", "tools/README.md"}, set())

    def test_the_first_page_and_the_changes_name_the_version(self):
        self.install(TREE)
        version = re.search(r'kVersion\[\] = "(.*)";', read(TREE, "common/base/version.h")).group(1)
        newest = re.search(r"^## (\S+?)(,.*)?$", read(self.folder, "tools/packaging/CHANGELOG.md"), re.MULTILINE).group(1)
        self.assertEqual(newest, version)
        self.assertIn(f"version {version}", read(self.folder, "README.md"))

    def test_the_first_page_is_short(self):
        lines = read(TREE, "README.md").splitlines()
        self.assertLessEqual(len(lines), 150)
        self.assertEqual([line for line in lines if len(line) > 160 and not line.startswith("|")], [])

    def test_a_link_to_what_is_not_there_becomes_its_path(self):
        tree = os.path.join(os.path.dirname(self.folder), "tree")
        write(tree, "README.md", "[a](worker/guides/python.md#first), [`gate.h`](server/gate.h), ![x](x.png), "
              "[my *gate*](server/gate.h)\n`[no](link)` [mine](LICENSE) [tests](tests/README.md) "
              "[`tests/`](tests/README.md) [out](https://x.org) [top](#a)\n"
              "```\n[code](server/gate.h)\n```\n")
        write(tree, "worker/guides/python.md", "# First\n[`server/`](../../server/x.txt)\n")
        for file in ("server/gate.h", "server/x.txt", "tests/README.md", "x.png", "LICENSE"):
            write(tree, file, "")
        self.assertEqual(self.install(tree), {"README.md", "worker/guides/python.md", "server/x.txt", "x.png"})
        self.assertEqual(read(self.folder, "README.md"),
                         "[a](worker/guides/python.md#first), `server/gate.h`, ![x](x.png), "
                         "my *gate* (`server/gate.h`)\n`[no](link)` [mine](/usr/share/common-licenses/Apache-2.0) "
                         "tests (`tests/README.md`) `tests/README.md` [out](https://x.org) [top](#a)\n"
                         "```\n[code](server/gate.h)\n```\n")

    def test_a_broken_link_is_noticed(self):
        write(self.folder, "README.md", "# One\n[a](#one) [b](#two) [c](none.txt) [d](../outside.txt) `[e](f)`\n")
        write(os.path.dirname(self.folder), "outside.txt", "")
        self.assertEqual([found.rpartition(" ")[2] for found in broken_links.broken_links(self.folder)],
                         ["#two", "none.txt", "../outside.txt"])


if __name__ == "__main__":
    recorded_tests.main()
