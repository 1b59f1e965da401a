#!/usr/bin/env python3
"""Copies the pages for users, and the examples and pictures that they name, for machines without this tree.

Usage: git ls-files | install_docs.py FOLDER

Reads the names of the tree's files from stdin, one a line. Copies README.md, every page that it or another copied
page links to, and the files of EXAMPLES; they keep their paths in FOLDER. A link to a file that is not copied becomes
its text and, in code, the path of that file in the tree. Runs in the top folder of the tree.
"""

import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "linting"))
# pylint: disable=wrong-import-position
from check_docs import CODE_SPAN, LINK, lines_of  # noqa: E402

# Pages for those who change Sluice. They name little that is on a machine without the tree.
NOT_FOR_USERS = ("tests/", "tools/mutating/")
# Folders whose files users read, copy or run.
EXAMPLES = ("proto/", "tests/tools/package/", "tools/cluster/container/", "tools/cluster/kubernetes/",
            "tools/cluster/slurm/", "tools/cluster/systemd/", "worker/examples/", "worker/python/examples/",
            "worker/torch/examples/")
# What a page may show, beside other pages.
SHOWN = (".json", ".png", ".svg", ".txt", ".yml")
# Only for those who build or check this tree.
OF_THE_TREE = ("BUILD.bazel", "buf.yaml")
# Files that each Debian has elsewhere.
ELSEWHERE = {"LICENSE": "/usr/share/common-licenses/Apache-2.0"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def target_of(page, link):
    """The file or folder of the tree that a page links to, or None: an address, or a part of the page itself."""
    path = link.strip("<>").partition("#")[0]
    if not path or re.match(r"[a-z][a-z+.-]*:", path):
        return None
    return os.path.normpath(os.path.join(os.path.dirname(page), path))


def links_of(line):
    """Yields the matches of LINK in a line of Markdown, without what only looks so in code."""
    code = [span.span() for span in CODE_SPAN.finditer(line)]
    for found in LINK.finditer(line):
        if not any(begin < found.start() < end for begin, end in code):
            yield found


def targets_of(page):
    for _, line, is_code in lines_of(read(page)):
        for found in [] if is_code else links_of(line):
            target = target_of(page, found.group(1))
            if target:
                yield target


def chosen(files):
    """The files that are copied, of those of the tree."""
    files = set(files)
    found = {file for file in files if file.startswith(EXAMPLES) and os.path.basename(file) not in OF_THE_TREE}
    ahead = ["README.md", *(file for file in found if file.endswith(".md"))]
    seen = set(ahead)
    while ahead:
        page = ahead.pop()
        found.add(page)
        for target in targets_of(page):
            if target not in files or target in seen or target.startswith(NOT_FOR_USERS):
                continue
            seen.add(target)
            if target.endswith(".md"):
                ahead.append(target)
            elif target.endswith(SHOWN):
                found.add(target)
    return found


def without_link(text, target):
    """What stands for a link to a file that is not copied."""
    code = re.fullmatch(r"`([^`]+)`", text)
    folder, name = os.path.split(target)
    if code and (folder if name == "README.md" else target).endswith(code.group(1).rstrip("/")):
        return f"`{target}`"
    return f"{text} (`{target}`)"


def rewritten(page, copied):
    """The text of a page, whose links all lead to what is copied, or elsewhere on the machine."""
    folders = {folder for file in copied for folder in parents_of(file)}
    linked = {number for number, _, is_code in lines_of(read(page)) if not is_code}

    def mended(found):
        target = target_of(page, found.group(1))
        if not target or target in copied or target in folders:
            return found.group()
        text = found.group()[found.group().index("[") + 1:found.start(1) - found.start()].removesuffix("](")
        if target in ELSEWHERE:
            return f"[{text}]({ELSEWHERE[target]})"
        return without_link(text, target)

    lines = read(page).split("\n")
    for number in linked:
        line, end, mended_line = lines[number - 1], 0, ""
        for found in links_of(line):
            mended_line += line[end:found.start()] + mended(found)
            end = found.end()
        lines[number - 1] = mended_line + line[end:]
    return "\n".join(lines)


def parents_of(path):
    while path:
        path = os.path.dirname(path)
        yield path or "."


def install(files, folder):
    """Copies, and returns the names of what it has copied."""
    copied = chosen(files)
    for file in sorted(copied):
        target = os.path.join(folder, file)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if file.endswith(".md"):
            with open(target, "w", encoding="utf-8") as out:
                out.write(rewritten(file, copied))
        else:
            shutil.copy(file, target)
    return copied


if __name__ == "__main__":
    if len(sys.argv) != 2 or not os.path.exists("README.md"):
        sys.exit(__doc__)
    install(sys.stdin.read().splitlines(), sys.argv[1])
