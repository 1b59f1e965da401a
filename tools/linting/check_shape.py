#!/usr/bin/env python3
"""Finds classes, functions and sources that are too large to be read as a whole.

Reads the names of C++ files from stdin, one a line. Prints "FILE:LINE: what is wrong" and exits with 1 if there is
anything. A class has its public and its private methods, but those of classes inside it and deleted ones.
Universal Ctags finds them.
"""

import collections
import re
import subprocess
import sys

MOST_METHODS = 25
LONGEST_FUNCTION = 60
LONGEST_SOURCE = 800
ANONYMOUS = re.compile(r"(?:::|^)__anon\w+")


def tags_of(files):
    """Of each class and function: file, first and last line, kind, scope, name."""
    command = ["ctags", "--options=NONE", "--language-force=C++", "--kinds-C++=fpcs", "--fields=+Zsne",
               "-x", "--_xformat=%F\t%n\t%e\t%K\t%Z\t%N", "-L", "-"]
    found = subprocess.run(command, input="\n".join(files), capture_output=True, text=True, check=False)
    if found.returncode:
        sys.exit(f"ctags: {found.stderr}")
    for line in found.stdout.splitlines():
        file, first, last, kind, scope, name = line.split("\t")
        if not name.startswith("ABSL_"):  # a field's annotation, which looks like a method
            yield file, int(first), int(last or first), kind, ANONYMOUS.sub("", scope).lstrip(":"), name


def read_lines(file):
    with open(file, encoding="utf-8") as source:
        return source.read().splitlines()


def short(scope):
    return scope.replace("sluice::", "")


def is_deleted(lines, first):
    """Whether the declaration that begins in that line, counted from 1, ends with "= delete;"."""
    rest = "".join(lines[first - 1:first + 4])
    return rest.split(";")[0].endswith("= delete")


class Checker:
    def __init__(self, files):
        self.findings = []
        self.lines = {file: read_lines(file) for file in files}
        self.tags = list(tags_of(files))

    def check(self):
        for file, lines in self.lines.items():
            if file.endswith(".cc") and len(lines) > LONGEST_SOURCE:
                self.findings.append(f"{file}:1: has {len(lines)} lines, expected at most {LONGEST_SOURCE}")
        for file, first, last, kind, _, name in self.tags:
            if kind == "function" and last - first >= LONGEST_FUNCTION:
                self.findings.append(
                    f"{file}:{first}: {name} has {last - first + 1} lines, expected at most {LONGEST_FUNCTION}")
        self.check_classes()
        return sorted(self.findings)

    def check_classes(self):
        for (file, first, name), count in self.count_methods().items():
            if count > MOST_METHODS:
                self.findings.append(f"{file}:{first}: {name} has {count} methods, expected at most {MOST_METHODS}")

    def count_methods(self):
        """By file, line and name of the class."""
        classes = collections.defaultdict(list)
        for file, first, last, kind, scope, name in self.tags:
            if kind in ("class", "struct"):
                classes[file, f"{scope}::{name}" if scope else name].append((first, last))
        counts = {}
        for (file, scope), places in classes.items():
            for first, last in places:
                counts[file, first, short(scope)] = 0
        for file, first, _, kind, scope, _ in self.tags:
            if kind not in ("function", "prototype") or is_deleted(self.lines[file], first):
                continue
            for begin, end in classes.get((file, scope), []):
                if begin <= first <= end:  # not a definition outside of its class
                    counts[file, begin, short(scope)] += 1
        return counts


def main():
    files = [file for file in sys.stdin.read().split("\n") if file]
    findings = Checker(files).check()
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
