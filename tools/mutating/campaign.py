"""Plays mutants: builds and tests each in a copy of the tree, and notes what became of it."""

import json
import os
import shutil
import subprocess
import time

KILLED, SURVIVED, INVALID, EQUIVALENT = "killed", "survived", "does not compile", "equivalent"
_BAZEL_BUILD_FAILED, _BAZEL_TESTS_FAILED, _BAZEL_NO_TESTS = 1, 3, 4


class BrokenTree(Exception):
    """The tree cannot be used as it is."""


def tracked_files(root):
    """The tracked files and the new ones that Git does not ignore."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True).stdout.decode()
    return [path for path in listed.split("\0") if path and os.path.isfile(os.path.join(root, path))]


def refresh(root, scratch):
    """Makes `scratch` a copy of the tree. Files that are the same keep their times, so that Bazel reads them once."""
    if os.path.realpath(scratch) == os.path.realpath(root):
        raise BrokenTree(f"the scratch copy would be the checkout itself, {root}; name another place with --scratch")
    wanted = set(tracked_files(root))
    for folder, _, names in os.walk(scratch):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), scratch)
            if path not in wanted:
                os.remove(os.path.join(folder, name))
    for path in wanted:
        source, copy = os.path.join(root, path), os.path.join(scratch, path)
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        if not os.path.exists(copy) or bytes_of(copy) != bytes_of(source):
            shutil.copy(source, copy)


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


class State:
    """The results so far: a line of JSON for each mutant. A line that was cut off is played again."""

    def __init__(self, path):
        self.path = path
        self.results = {}
        if not os.path.exists(path):
            return
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                try:
                    result = json.loads(line)
                except ValueError:
                    continue
                self.results[result["id"]] = result

    def forget(self, verdict):
        """The mutants with this verdict will be played again; the last line of a mutant counts."""
        self.results = {name: result for name, result in self.results.items() if result["verdict"] != verdict}

    def note(self, mutant, verdict, by, seconds):
        result = {"id": mutant.id, "path": mutant.path, "line": mutant.line, "kind": mutant.kind,
                  "before": mutant.before, "after": mutant.after, "verdict": verdict, "by": by,
                  "seconds": round(seconds, 1)}
        self.results[mutant.id] = result
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(("" if self._ends_with_a_line() else "\n") + json.dumps(result) + "\n")

    def _ends_with_a_line(self):
        written = bytes_of(self.path) if os.path.exists(self.path) else b""
        return not written or written.endswith(b"\n")


class Tree:
    """The scratch copy, with Bazel in it."""

    def __init__(self, scratch, timeout, excluded):
        self.scratch = scratch
        self.timeout = timeout
        self.excluded = excluded

    def tests_of(self, path):
        """The tests that depend on a file: first those of its own folder, then the others."""
        label = self._bazel("query", path).stdout.strip()
        if not label:
            raise BrokenTree(f"Bazel knows no target for {path}; is it in a BUILD.bazel?")
        found = self._bazel("query", f"tests(rdeps(//tests/..., {label}))", "--keep_going").stdout.split()
        own = "//tests/" + os.path.dirname(path)
        tests = [test for test in found if test not in self.excluded]
        near = [test for test in tests if test.startswith((own + ":", own + "/"))]
        return near, [test for test in tests if test not in near]

    def test(self, targets):
        """Bazel's exit status, and what it printed."""
        done = self._bazel("test", "--notest_keep_going", "--test_output=summary", f"--test_timeout={self.timeout}", *targets)
        return done.returncode, done.stdout + done.stderr

    def _bazel(self, *arguments):
        return subprocess.run(["bazel", *arguments], cwd=self.scratch, capture_output=True, text=True, check=False)


def verdict_of(status):
    if status in (0, _BAZEL_NO_TESTS):
        return SURVIVED
    if status == _BAZEL_TESTS_FAILED:
        return KILLED
    if status == _BAZEL_BUILD_FAILED:
        return INVALID
    raise BrokenTree(f"bazel test ended with exit status {status}; run it in the scratch copy to see why")


def killer_in(output):
    """The first test that failed."""
    for line in output.splitlines():
        if line.startswith("//") and ("FAILED" in line or "TIMEOUT" in line):
            return line.split()[0]
    return ""


def play(mutant, tree, stages):
    """Returns the verdict, and the test that killed the mutant. The file is as before when it returns."""
    path = os.path.join(tree.scratch, mutant.path)
    original = bytes_of(path)
    text = original.decode()
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text[:mutant.begin] + mutant.new + text[mutant.end:])
        for targets in stages:
            if not targets:
                continue
            status, output = tree.test(targets)
            verdict = verdict_of(status)
            if verdict != SURVIVED:
                return verdict, killer_in(output)
        return SURVIVED, ""
    finally:
        with open(path, "wb") as file:
            file.write(original)


def run(mutants, tree, state, equivalent, near_only, tell):
    """Plays those mutants that `state` has no result for. `tell` gets a line for each."""
    stages_of = {}
    for number, mutant in enumerate(mutants, 1):
        if mutant.id in state.results:
            continue
        began = time.monotonic()
        if mutant.id in equivalent:
            verdict, killer = EQUIVALENT, ""
        else:
            if mutant.path not in stages_of:
                stages_of[mutant.path] = _sound_stages(mutant.path, tree, near_only)
            verdict, killer = play(mutant, tree, stages_of[mutant.path])
        state.note(mutant, verdict, killer, time.monotonic() - began)
        tell(f"{number} of {len(mutants)}  {verdict:16}  {mutant.path}:{mutant.line}  {mutant.after}  {killer}")


def _sound_stages(path, tree, near_only):
    """The tests of a file, which pass without a mutant."""
    near, others = tree.tests_of(path)
    stages = [near] if near_only else [near, others]
    for targets in stages:
        status, output = tree.test(targets) if targets else (0, "")
        if verdict_of(status) != SURVIVED:
            raise BrokenTree(f"without any mutant a test of {path} fails: {killer_in(output) or output[-2000:]}")
    return stages


def summary(mutants, results, equivalent):
    """The lines of the report: the survivors, then the share that was killed."""
    played = [results[mutant.id] for mutant in mutants if mutant.id in results]
    verdicts = [EQUIVALENT if result["id"] in equivalent else result["verdict"] for result in played]
    lines = []
    for result, verdict in zip(played, verdicts):
        if verdict == SURVIVED:
            lines += [f"survived {result['id']}  {result['path']}:{result['line']}  ({result['kind']})",
                      f"  was  {result['before']}", f"  is   {result['after']}"]
    killed, survived = verdicts.count(KILLED), verdicts.count(SURVIVED)
    share = f"{100 * killed / (killed + survived):.1f} %" if killed + survived else "none"
    lines.append(f"{killed} killed, {survived} survived, {verdicts.count(EQUIVALENT)} equivalent, "
                 f"{verdicts.count(INVALID)} did not compile; killed of those that could be: {share}")
    return lines
