#!/usr/bin/env python3
"""What tools/setup says and runs, with programs in the place of apt-get, dpkg-query and npm."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "testing")]
# pylint: disable=wrong-import-position
import recorded_tests  # noqa: E402

TREE = os.path.join(HERE, "..", "..")
EVERYTHING = """for name; do echo "installed $name"; done"""  # what -W, -f and a format add does no harm
ALL_BUT_ONE = """for name; do [ "$name" = libzstd-dev ] || echo "installed $name"; done"""
PLAN = """case "$*" in *--assume-no*) cat <<'PLAN'
0 upgraded, 41 newly installed, 0 to remove and 0 not upgraded.
Need to get 12 kB/70.5 MB of archives.
After this operation, 301 MB of additional disk space will be used.
PLAN
exit 1;; esac
"""
# What npm 11 and npm 9 print.
NO_REGISTRY = """npm error code ECONNREFUSED
npm error syscall connect
npm error errno ECONNREFUSED
npm error FetchError: request to http://127.0.0.1:9/playwright-core failed, reason: connect ECONNREFUSED 127.0.0.1:9
"""
NOT_FOUND = """npm ERR! code E404
npm ERR! 404 Not Found - GET http://mirror/playwright-core - Not found
"""


class SetupTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.makedirs(f"{self.folder}/bin")
        self.program("dpkg-query", EVERYTHING)
        self.program("node", "")
        self.program("sudo", '"$@"')

    def program(self, name, script):
        """Each writes its calls down."""
        path = f"{self.folder}/bin/{name}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho "{name} $*" >>{self.folder}/calls\n{script}\n')
        os.chmod(path, 0o755)

    def npm_that_fails(self, said):
        self.program("npm", f"[ $1 = config ] && echo http://127.0.0.1:9/ && exit\ncat >&2 <<'SAID'\n{said}SAID\nexit 1")

    def setup(self, *arguments):
        variables = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "TMPDIR": self.folder,
                     "XDG_CACHE_HOME": f"{self.folder}/cache"}
        ended = subprocess.run([os.path.join(TREE, "tools/setup"), *arguments], env=variables, capture_output=True,
                               text=True, check=False)
        return ended.returncode, ended.stdout, ended.stderr

    def calls(self, name):
        with open(f"{self.folder}/calls", encoding="utf-8") as file:
            return [line for line in file.read().splitlines() if line.startswith(name + " ")]

    def test_says_and_runs_nothing_where_nothing_is_missing_and_needs_no_npm(self):
        self.npm_that_fails(NO_REGISTRY)
        self.program("apt-get", "exit 1")
        for kind in ([], ["programs"], ["package"], ["peers"]):
            self.assertEqual(self.setup(*kind), (0, "", ""))
        self.assertEqual((self.calls("apt-get"), self.calls("npm")), ([], []))

    def test_says_at_once_what_is_missing_and_then_how_large_it_is(self):
        self.program("dpkg-query", ALL_BUT_ONE)
        self.program("apt-get", PLAN)
        code, told, _ = self.setup("programs")
        self.assertEqual((code, told.splitlines()), (0, [
            "setup: 1 packages are missing: libzstd-dev",
            "setup: with what they need, 41 new packages, 70.5 MB of archives to fetch, 301 MB of the disk to use"]))

    def fails_with(self, log):
        self.program("dpkg-query", ALL_BUT_ONE)
        self.program("apt-get", f"""{PLAN}case "$*" in *Status-Fd*) cat <<'LOG'\n{log}\nLOG\nexit 100;; esac""")
        code, _, told = self.setup("programs")
        self.assertEqual(code, 5)
        return told

    def test_names_what_apt_could_not_fetch(self):
        told = self.fails_with("E: Failed to fetch http://mirror/libzstd-dev_1.deb  Could not connect to mirror:80\n"
                               "E: Unable to fetch some archives, maybe run apt-get update")
        self.assertIn("could not fetch http://mirror/libzstd-dev_1.deb (Could not connect to mirror:80). Make", told)

    def test_names_the_package_that_no_source_has(self):
        self.assertIn("no source of packages has libzstd-dev. Sluice needs Debian 12 or 13",
                      self.fails_with("E: Unable to locate package libzstd-dev"))
        self.assertIn("no source of packages has libzstd-dev", self.fails_with("E: Package 'libzstd-dev' has no installation candidate"))

    def test_names_the_package_that_dpkg_could_not_install(self):
        told = self.fails_with("Errors were encountered while processing:\n libzstd-dev\nE: Sub-process dpkg returned 1")
        self.assertIn("dpkg could not install libzstd-dev. Mend", told)

    def test_names_the_package_and_the_registry_that_npm_could_not_use(self):
        self.npm_that_fails(NO_REGISTRY)
        code, _, told = self.setup("page")
        self.assertEqual(code, 6)
        self.assertIn("npm could not install http://127.0.0.1:9/playwright-core (connect ECONNREFUSED 127.0.0.1:9). Name a "
                      "registry", told)
        self.assertIn("npm_config_registry (now: http://127.0.0.1:9/)", told)
        self.npm_that_fails(NOT_FOUND)
        self.assertIn("npm could not install 404 Not Found - GET http://mirror/playwright-core - Not found. Name", self.setup("page")[2])

    def test_does_not_ask_npm_again_for_what_is_installed(self):
        self.npm_that_fails(NO_REGISTRY)
        os.makedirs(f"{self.folder}/cache/sluice/page-test")
        shutil.copy(os.path.join(TREE, "tests/server/web/page/package-lock.json"),
                    f"{self.folder}/cache/sluice/page-test/installed.json")
        self.assertEqual(self.setup("page"), (0, "", ""))
        self.assertEqual(self.calls("npm"), [])


if __name__ == "__main__":
    recorded_tests.main()
