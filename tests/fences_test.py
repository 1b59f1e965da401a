#!/usr/bin/env python3
"""Checks who includes whom, against the list in fences.txt.

- A folder includes only the folders that the list allows it, and each edge of the list is used.
- The folders have no cycle.
- A foreign library is included only by the files that the list names.
- Words that only a few files may use, for example absl::Now(), stand only there.
- No two headers define a type of the same name, since a program that has both may mix them up without an error.

Prints each breach with the line of the list that would allow it, and writes a test case for each check.
"""

import os
import re
import sys
import xml.sax.saxutils
from fnmatch import fnmatchcase

TOPS = ("common", "server", "worker", "tools", "tests")
TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)(?: final)?\s*[:{]", re.MULTILINE)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)', re.MULTILINE)


class Fences:
    """What fences.txt says."""

    def __init__(self, text):
        self.allowed = {}  # folder -> the folders that its files may include
        self.libraries = []  # (name, pattern of headers, patterns of the files that may include them)
        self.words = []  # (name, pattern of words, patterns of the files that may use them)
        for line in text.splitlines():
            line = line.split("#", 1)[0].rstrip()
            if not line:
                continue
            name, _, rest = line.partition(":")
            kind, _, what = name.rpartition(" ")
            if kind:
                pattern, *files = rest.split()
                {"library": self.libraries, "words": self.words}[kind].append((what, re.compile(pattern), files))
            else:
                self.allowed[name] = set(rest.split())


def is_fenced(path):
    """Tests may include what they test; only the fixtures that they share have fences."""
    return not path.startswith("tests/") or path.startswith("tests/testing/")


def folder_of(path):
    return os.path.dirname(os.path.normpath(path))


def edges_of(includes):
    """The edges between folders: (from, to) -> one "file: header" that makes it."""
    edges = {}
    for file, header in includes:
        header = os.path.normpath(os.path.join(folder_of(file), header) if header.startswith("..") else header)
        if not is_fenced(file) or header.split("/")[0] not in TOPS or folder_of(file) == folder_of(header):
            continue
        edges.setdefault((folder_of(file), folder_of(header)), f"{file}: {header}")
    return edges


def edges_not_listed(fences, includes):
    return [
        f'{example}; if that is meant, add "{to}" to the line "{source}:"'
        for (source, to), example in sorted(edges_of(includes).items())
        if to not in fences.allowed.get(source, ())
    ]


def edges_not_used(fences, includes):
    used = edges_of(includes)
    return [
        f'no file of {source} includes {to}; remove it from the line "{source}:"'
        for source, targets in sorted(fences.allowed.items())
        for to in sorted(targets)
        if (source, to) not in used
    ]


def cycles(fences):
    """Folders that can be reached from themselves."""

    def reached(start):
        seen, left = set(), list(fences.allowed.get(start, ()))
        while left:
            folder = left.pop()
            if folder not in seen:
                seen.add(folder)
                left.extend(fences.allowed.get(folder, ()))
        return seen

    return [f"{folder} includes itself by way of others" for folder in sorted(fences.allowed) if folder in reached(folder)]


def libraries_outside_their_door(fences, includes):
    return [
        f"{file} includes {header}: {name} may be included only by {' '.join(files)}"
        for name, pattern, files in fences.libraries
        for file, header in includes
        if is_fenced(file) and pattern.search(header) and not any(fnmatchcase(file, allowed) for allowed in files)
    ]


def words_outside_their_files(fences, sources):
    return [
        f"{file}:{number} says {match.group()}: {name} may be used only by {' '.join(files)}"
        for name, pattern, files in fences.words
        for file, text in sources
        if not file.startswith("tests/") and not any(fnmatchcase(file, allowed) for allowed in files)
        for number, line in enumerate(text.splitlines(), 1)
        for match in [pattern.search(line.split("//", 1)[0])]
        if match
    ]


def types_defined_twice(sources):
    first = {}
    return [
        f"{file} and {first[name]} both define {name}; rename one"
        for file, text in sources
        if file.endswith(".h") and not file.startswith("tests/")
        for name in TYPE.findall(text)
        if first.setdefault(name, file) != file
    ]


def sources_under(root):
    """All (file, text) of the sources under root."""
    found = []
    for top in TOPS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith((".h", ".cc")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        found.append((os.path.relpath(path, root), file.read()))
    return found


def planted_breaches():
    """The same checks on a small list and sources that break each rule once."""
    fences = Fences("common/a:\nserver/b: common/a server/c  # a comment\nserver/c: server/b\nlibrary zstd: ^zstd\\.h$ common/a/z.cc\n"
                    "words clock: Now\\(\\) common/a/clock.cc\n")
    includes = [
        ("common/a/z.cc", "zstd.h"),
        ("common/a/x.cc", "zstd.h"),
        ("common/a/x.cc", "server/b/b.h"),
        ("server/b/b.cc", "common/a/x.h"),
        ("server/b/b.cc", "../c/c.h"),
        ("tests/server/b/b_test.cc", "server/c/c.h"),
    ]
    sources = [("common/a/clock.cc", "Now();"), ("common/a/x.cc", "\nNow();  // Now()"), ("tests/x.cc", "Now();"),
               ("common/a/a.h", "struct X {\n};\nclass Y;\n"), ("server/b/b.h", "class X final : public Y {\n};\nclass Y {\n};\n")]
    found = (
        edges_not_listed(fences, includes)
        + edges_not_used(fences, includes)
        + cycles(fences)
        + libraries_outside_their_door(fences, includes)
        + words_outside_their_files(fences, sources)
        + types_defined_twice(sources)
    )
    expected = [
        'common/a/x.cc: server/b/b.h; if that is meant, add "server/b" to the line "common/a:"',
        'no file of server/c includes server/b; remove it from the line "server/c:"',
        "server/b includes itself by way of others",
        "server/c includes itself by way of others",
        "common/a/x.cc includes zstd.h: zstd may be included only by common/a/z.cc",
        "common/a/x.cc:2 says Now(): clock may be used only by common/a/clock.cc",
        "server/b/b.h and common/a/a.h both define X; rename one",
    ]
    return [] if found == expected else [f"expected {expected}, found {found}"]


def main():
    root = os.path.dirname(os.path.realpath("WORKSPACE"))
    with open(os.path.join(root, "tests/fences.txt"), encoding="utf-8") as file:
        fences = Fences(file.read())
    sources = sources_under(root)
    includes = [(file, header) for file, text in sources for header in INCLUDE.findall(text)]
    unseen = [top for top in TOPS if not any(file.startswith(top + "/") for file, _ in includes)]
    cases = {
        "SeesEveryPart": [f"no source seen in {top}" for top in unseen],
        "EveryEdgeIsListed": edges_not_listed(fences, includes),
        "EveryListedEdgeIsUsed": edges_not_used(fences, includes),
        "FoldersHaveNoCycle": cycles(fences),
        "LibrariesStayBehindTheirDoors": libraries_outside_their_door(fences, includes),
        "WordsStayInTheirFiles": words_outside_their_files(fences, sources),
        "TypesHaveNamesOfTheirOwn": types_defined_twice(sources),
        "NoticesPlantedBreaches": planted_breaches(),
    }
    rows = []
    for name, breaches in cases.items():
        for breach in breaches:
            print(f"{name}: {breach}")
        message = xml.sax.saxutils.quoteattr("; ".join(breaches))
        verdict = f"<failure message={message}/>" if breaches else ""
        rows.append(f'<testcase classname="Fences" name="{name}">{verdict}</testcase>')
    with open(os.environ.get("XML_OUTPUT_FILE", os.devnull), "w", encoding="utf-8") as report:
        report.write("<testsuites><testsuite name=\"Fences\">\n" + "\n".join(rows) + "\n</testsuite></testsuites>\n")
    return 1 if any(cases.values()) else 0


sys.exit(main())
