#!/usr/bin/env python3
"""Finds what Markdown names and the tree does not have: links, anchors, files, Bazel targets, flags.

Reads the names of the tree's files from stdin, one a line, and looks at those that end in .md; in scripts and
sources it looks at targets and at the pages they name. Prints "FILE:LINE: what is wrong" and exits with 1 if
there is anything. A page that names what is not there on purpose, as a recipe does, says so anywhere in a comment:
<!-- not here: server/optimizers/lion_optimizer.cc -->
A page below figures/ tells what was measured at its date: only its links must hold.
"""

import os
import re
import shlex
import sys

# Flags that READMEs give to programs of others outside a command of theirs. Keep it short.
FOREIGN_FLAGS = frozenset("""
    --bind-to --config --copt --enable-recovery --force_pic --from-literal --kill-on-bad-exit --logdir --map-by
    --mca --oversubscribe --platform_suffix --runs_per_test --signal --suite --test_arg --test_env --test_filter
    --test_output
""".split())
# In a command, all flags after one of these are its own, up to the next program of ours.
FOREIGN_PROGRAMS = frozenset("""
    apt apt-get bazel benchstat clang-format clang-tidy chroot clang++ cmake curl debootstrap docker g++ gcc gdb git grep
    grpcurl jq kubectl llvm-cov make mount mpirun npm openssl perf pip podman protoc python python3 sbatch scontrol squeue
    srun ssh sudo sysctl systemctl tc valgrind
""".split())
SOURCE_ENDINGS = (".bazel", ".bzl", ".cc", ".h", ".md", ".proto", ".py", ".sh")
PATH = re.compile(r"(?:\./)?[\w.+-]+(?:/[\w.+-]+)*/?")
LABEL = re.compile(r"(?<![\w:/.{}$*])-?//(?P<package>[\w./-]*?)(?P<rest>/?\.\.\.|:[\w./+-]+)?(?=[\s`'\"),;]|\.?$|\.\s)")
OWN_PROGRAM = "--sluice-"  # the prefix of our flags in programs of users
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\((<[^>]*>|[^\s)]+)(?:\s+\"[^\"]*\")?\)")
LINK_DEFINITION = re.compile(r"^\[[^\]]+\]:\s+(\S+)")
NOT_HERE = re.compile(r"<!-- not here: (.*?) -->", re.S)
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


class Tree:
    """The files of a checkout, and what they define."""

    def __init__(self, files):
        self.files = set(files)
        self.folders = {""}
        for file in files:
            while file:
                file = os.path.dirname(file)
                self.folders.add(file)
        self.top = {folder for folder in self.folders if folder and "/" not in folder}
        self.names = {os.path.basename(file) for file in files}
        for file in files:  # Headers of libraries: those that our sources include.
            if file.endswith((".cc", ".h")):
                self.names.update(map(os.path.basename, re.findall(r"#include <([^>]+)>", read(file))))
        self.flags = self._defined_flags()
        self._anchors = {}
        self._targets = {}

    def has(self, path):
        path = os.path.normpath(path)
        return path in self.files or path in self.folders or path == "."

    def has_unit(self, path):
        """Whether the path is there, or is a unit of a header and a source without their endings."""
        return self.has(path) or any(path + ending in self.files for ending in (".h", ".cc", ".proto"))

    def _defined_flags(self):
        """The flags of our programs: those in quotes in C++ and Python, all of them in scripts."""
        flags = set()
        for file in self.files:
            if file.startswith("tests/") and not file.endswith(("main.cc", "program.cc")):
                continue
            if file.endswith((".cc", ".h", ".py")):
                for text in re.findall(r'"([^"\n]*)"', read(file)):
                    flags.update(FLAG.findall(text))
            elif "/" in file and "." not in os.path.basename(file) or file.endswith(".sh"):
                if not file.startswith("tests/fuzz/corpus/"):
                    flags.update(FLAG.findall(read(file)))
        return flags

    def anchors(self, page):
        if page not in self._anchors:
            self._anchors[page] = anchors_of(read(page))
        return self._anchors[page]

    def has_target(self, package, name):
        build = os.path.join(package, "BUILD.bazel")
        if build not in self.files:
            return False
        if build not in self._targets:
            self._targets[build] = set(re.findall(r'"([\w./+-]+)"', read(build)))
        names = self._targets[build]
        stem = re.sub(r"_(generated|protos)$", "", name)
        # Macros name a test for its source, and lists of names become targets.
        return (bool({name, stem, name + ".cc", name + ".sh", name + ".py"} & names) or
                os.path.join(package, name) in self.files)


def read(file):
    try:
        with open(file, encoding="utf-8") as stream:
            return stream.read()
    except (UnicodeDecodeError, FileNotFoundError):
        return ""


def slug(heading):
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors_of(text):
    anchors, seen = set(), {}
    for _, line, is_code in lines_of(text):
        anchors.update(re.findall(r"<a\s+(?:name|id)=\"([^\"]+)\"", line))
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if is_code or not heading:
            continue
        name = slug(heading.group(1))
        count = seen.get(name, 0)
        seen[name] = count + 1
        anchors.add(f"{name}-{count}" if count else name)
    return anchors


def lines_of(text):
    """Yields (number, line, whether it is in a fenced block); the fences themselves are left out."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)(.*)", line)
        if mark and fence is None:
            fence = mark.group(1)
        elif mark and mark.group(1).startswith(fence) and not mark.group(2).strip():
            fence = None
        else:
            yield number, line, fence is not None


class Checker:
    """Looks at one file and collects what is wrong with it."""

    def __init__(self, tree, file):
        self.tree = tree
        self.file = file
        self.folder = os.path.dirname(file)
        self.findings = []
        self.not_here = set(" ".join(NOT_HERE.findall(read(file))).split())

    def note(self, number, text):
        finding = f"{self.file}:{number}: {text}"
        if finding not in self.findings:
            self.findings.append(finding)

    def check_page(self):
        is_past = "/figures/" in self.file
        for number, line, is_code in lines_of(read(self.file)):
            if not is_code:
                for link in LINK.findall(CODE_SPAN.sub("code", line)) + LINK_DEFINITION.findall(line):
                    self.check_link(number, link.strip("<>"))
            if is_past:
                continue
            self.check_labels(number, line)
            if is_code:
                self.check_command(number, line)
                continue
            for _, code in CODE_SPAN.findall(line):
                self.check_code(number, code)

    def check_source(self):
        """Of a source: the pages that it names; of a script that is no test: its labels, too."""
        is_script = not self.file.startswith("tests/") and (
            self.file.endswith(".sh") or read(self.file).startswith("#!"))
        for number, line in enumerate(read(self.file).splitlines(), 1):
            if is_script:
                self.check_labels(number, line)
            for page in re.findall(r"(?<![\w/.])[\w./-]+\.md\b", line):
                if not {page, os.path.join(self.folder, page)} & self.tree.files and page not in self.tree.names:
                    self.note(number, f"names the page {page}, which does not exist")

    def check_link(self, number, link):
        if re.match(r"[a-z][a-z+.-]*:", link):
            return
        path, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(self.folder, path)) if path else self.file
        if not self.tree.has(target):
            self.note(number, f"links to {path}, which does not exist")
        elif anchor and target.endswith(".md") and anchor not in self.tree.anchors(target):
            self.note(number, f"links to {link}, but {target} has no such heading")

    def check_code(self, number, code):
        words = code.split()
        if len(words) == 1 and not code.startswith("-"):
            self.check_path(number, code)
        else:
            self.check_command(number, code)

    def check_command(self, number, line):
        """A command, or any line of a fenced block: its files and its flags."""
        try:
            words = shlex.split(line.replace("[", " ").replace("]", " ").replace("…", " "), comments=True)
        except ValueError:  # Not a command: quotes that do not close.
            words = line.split()
        foreign = False
        for word in words:
            name = os.path.basename(word)
            if word.split("/")[0] in self.tree.top and "=" not in word and not word.endswith("/"):
                self.check_path(number, word, units=True)
            if name in FOREIGN_PROGRAMS:
                foreign = True
            elif re.match(r"(\./)?tools/|bazel-bin/", word) or name.startswith("sluice"):
                foreign = False
            elif not foreign:
                self.check_flag(number, word)

    def check_flag(self, number, word):
        for flag in FLAG.findall(word.split("=")[0]):
            known = flag == OWN_PROGRAM or flag.replace(OWN_PROGRAM, "--") in self.tree.flags
            if not known and flag not in FOREIGN_FLAGS:
                self.note(number, f"names the flag {flag}, which no program of this tree defines")

    def check_path(self, number, word, units=True):
        """A word in code that can only be a file of this tree: it begins with a folder, or ends as sources do."""
        word = re.sub(r":\d+$", "", word).rstrip(".,;")
        if not PATH.fullmatch(word) or word in self.not_here or re.search(r"\bX\b|X_|_X|NAME|^my_|/my_", word):
            return
        if word.split("/")[0] in self.tree.top and "/" in word:
            if not (self.tree.has_unit(word) if units else self.tree.has(word)):
                if not self.tree.has(os.path.join(self.folder, word)):
                    self.note(number, f"names {word}, which does not exist")
        elif word.endswith(SOURCE_ENDINGS) and not word.startswith("."):
            known = self.tree.has(word) or self.tree.has(os.path.join(self.folder, word))
            if not known and not ("/" not in word and word in self.tree.names):
                self.note(number, f"names {word}, which does not exist")

    def check_labels(self, number, line):
        for match in LABEL.finditer(line):
            package, rest = match.group("package").rstrip("/"), match.group("rest") or ""
            if (package.split("/")[0] not in self.tree.top and not rest) or package.startswith("my_"):
                continue  # A path or an address of something else, or a reader's own folder.
            if package not in self.tree.folders:
                self.note(number, f"names {match.group()}, but there is no folder {package}")
            elif rest.endswith("..."):
                continue
            elif not rest and "." in os.path.basename(package):
                continue
            elif rest[1:] not in ("all", "*"):
                name = rest[1:] or os.path.basename(package)
                if not self.tree.has_target(package, name):
                    self.note(number, f"names {match.group()}, which {package or '.'}/BUILD.bazel does not define")


def main():
    files = sys.stdin.read().split("\n")
    tree = Tree([file for file in files if file])
    findings = []
    for file in sorted(tree.files):
        if file.startswith("tests/fuzz/corpus/"):
            continue
        checker = Checker(tree, file)
        if file.endswith(".md"):
            checker.check_page()
        elif file.endswith((".cc", ".h", ".proto", ".py", ".sh")) or "." not in os.path.basename(file):
            checker.check_source()
        findings += checker.findings
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
