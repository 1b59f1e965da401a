"""Runs tests out of a tree that Bazel has built, without Bazel: with the mutants' switches, a time limit, and no rest."""

import collections
import glob
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import xml.etree.ElementTree

# A test target: its label, the program and its arguments below the runfiles, and the variables that it asks for.
Target = collections.namedtuple("Target", "label words environment")
# One run of a target. `cases` are those of GoogleTest that were played, with their seconds and whether they passed.
Run = collections.namedtuple("Run", "passed seconds cases output")

_MOST_MEMORY = 8 << 30
_MOST_FILE = 2 << 30
_CASE = re.compile(r"^\[ +(OK|FAILED) +\] ([\w./]+)(?:,.*)? \((\d+) ms\)$", re.MULTILINE)
_STARTED = re.compile(r"^\[ RUN +\] ([\w./]+)", re.MULTILINE)


class BrokenTree(Exception):
    """The tree cannot be used as it is."""


class Stopped(Exception):
    """Somebody wants the campaign to end."""


class Tree:
    """The copy of the tree, with Bazel in it."""

    def __init__(self, scratch):
        self.scratch = scratch

    def tests_of(self, paths, without):
        """The targets that depend on any of these files."""
        found = self._bazel("query", f"tests(rdeps(//tests/..., set({' '.join(paths)})))", "--output=label").split()
        labels = " ".join(sorted(set(found) - set(without)))
        if not labels:
            raise BrokenTree(f"no test depends on {paths[0]} or the other files; are they in a BUILD.bazel?")
        environments = self._environments(labels)
        words = {}
        actions = json.loads(self._bazel("aquery", f'mnemonic("TestRunner", set({labels}))', "--output=jsonproto"))
        names = {target["id"]: target["label"] for target in actions["targets"]}
        for action in actions["actions"]:
            words[names[action["targetId"]]] = action["arguments"][1:]  # behind Bazel's own script
        return [Target(label, words[label], environments[label]) for label in sorted(words)]

    def build(self, labels):
        """Returns whether it could be built, and what was printed."""
        # The switches make conversions that are harmless and that the compiler would warn of.
        done = subprocess.run(["bazel", "build", "--keep_going", "--color=no", "--show_progress_rate_limit=60",
                               "--per_file_copt=^(common|server|worker)/@-w,-Wno-narrowing,-Wno-error", *labels],
                              cwd=self.scratch, capture_output=True, text=True, check=False)
        return done.returncode == 0, done.stdout + done.stderr

    def _environments(self, labels):
        listed = xml.etree.ElementTree.fromstring(self._bazel("query", f"set({labels})", "--output=xml"))
        found = {}
        for rule in listed.iter("rule"):
            pairs = [pair.findall("string") for pair in rule.findall("dict[@name='env']/pair")]
            found[rule.get("name")] = {name.get("value"): value.get("value") for name, value in pairs}
        return found

    def _bazel(self, *arguments):
        done = subprocess.run(["bazel", *arguments], cwd=self.scratch, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BrokenTree(f"bazel {arguments[0]} ended with exit status {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout


class Runner:
    """Runs tests. Safe to use by several threads. Each run has a folder of its own, which is gone afterwards."""

    def __init__(self, scratch):
        self._outputs = os.path.join(os.path.realpath(scratch), "bazel-bin")
        self._mutex = threading.Lock()
        self._stopping = False
        self._folders = set()

    def digest(self, target):
        """Changes when the test, what it links or what it reads is built anew."""
        seen = hashlib.sha1()
        for path in sorted(glob.glob(self._runfiles(target) + "/**", recursive=True)):
            if os.path.isfile(path):
                info = os.stat(path)
                seen.update(f"{path}|{info.st_size}|{info.st_mtime_ns}\n".encode())
        return seen.hexdigest()

    def run(self, target, cases, limit, variables):
        """Plays `cases`, or all if there are none, until one fails or `limit` seconds are over."""
        folder = tempfile.mkdtemp(prefix="mutate-")
        try:
            with self._mutex:
                if self._stopping:
                    raise Stopped
                self._folders.add(folder)
            return self._run(target, cases, limit, variables, folder)
        finally:
            _end_processes_of(folder)
            with self._mutex:
                self._folders.discard(folder)
            shutil.rmtree(folder, ignore_errors=True)

    def stop(self):
        """Ends what runs; whoever waits for it, or asks for more, gets Stopped."""
        with self._mutex:
            self._stopping = True
            for folder in self._folders:
                _end_processes_of(folder)

    def _runfiles(self, target):
        package, name = target.label[2:].split(":")
        return os.path.join(self._outputs, package, name + ".runfiles")

    def _run(self, target, cases, limit, variables, folder):
        runfiles = self._runfiles(target)
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "TZ": "UTC", "TEST_TARGET": target.label, "TEST_WORKSPACE": "sluice",
                       "TEST_SRCDIR": runfiles, "RUNFILES_DIR": runfiles, "TEST_TMPDIR": folder,
                       "TEST_UNDECLARED_OUTPUTS_DIR": folder, "GTEST_FAIL_FAST": "1",
                       **({"GTEST_FILTER": ":".join(cases)} if cases else {}), **target.environment, **variables}
        path = os.path.join(folder, ".printed")
        began = time.monotonic()
        with open(path, "wb") as output:
            workspace = os.path.join(runfiles, "sluice")
            process = subprocess.Popen([os.path.join(workspace, target.words[0]), *target.words[1:]], cwd=workspace,
                                       env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, process_group=0)
        for kind, most in ((resource.RLIMIT_DATA, _MOST_MEMORY), (resource.RLIMIT_FSIZE, _MOST_FILE),
                           (resource.RLIMIT_CORE, 0)):
            resource.prlimit(process.pid, kind, (most, most))
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            _end_processes_of(folder)
            process.kill()
            status = process.wait()
        if self._stopping:
            raise Stopped
        with open(path, encoding="utf-8", errors="replace") as file:
            printed = file.read()
        return Run(status == 0, time.monotonic() - began, _cases_in(printed), printed)


def _cases_in(printed):
    """The cases with their seconds and whether they passed. One that did not end has failed."""
    ended = {name: (float(milliseconds) / 1000, how == "OK") for how, name, milliseconds in _CASE.findall(printed)}
    return {name: ended.get(name, (0.0, "[  SKIPPED ] " + name in printed)) for name in _STARTED.findall(printed)}


def _end_processes_of(folder):
    """Kills whatever was started with this folder as TEST_TMPDIR: tests that fail leave servers behind."""
    mark = f"\0TEST_TMPDIR={folder}\0".encode()
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if mark in b"\0" + file.read():
                    os.kill(int(path.split("/")[2]), signal.SIGKILL)
        except OSError:
            continue  # it has ended, or is not ours
