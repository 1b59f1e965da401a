#!/usr/bin/env python3
"""Writes a C++ source that holds files.

Usage: embed.py PATH=FILE... >page_files.cc   PATH is where the page serves the file.
"""

import hashlib
import os
import sys

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml",
         ".txt": "text/plain"}
BYTES_PER_LINE = 60

HEAD = """#include "server/web/page/page_files.h"

namespace sluice {

const std::vector<PageFile>& PageFiles() {
  static const auto* const files = new std::vector<PageFile>{"""


def literal(content):
    """C++ literals, one in a line. Octal escapes end after three digits, whatever follows."""
    lines = [content[at:at + BYTES_PER_LINE] for at in range(0, len(content), BYTES_PER_LINE)]
    plain = set(range(0x20, 0x7f)) - set(b'"\\?')
    return "\n".join('"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in line) + '"'
                     for line in lines)


def main():
    print(HEAD)
    for argument in sys.argv[1:]:
        path, _, file = argument.partition("=")
        with open(file, "rb") as source:
            content = source.read()
        kind = TYPES[os.path.splitext(path)[1] or ".html"]
        tag = hashlib.sha256(content).hexdigest()[:16]
        print(f'{{"{path}", "{kind}; charset=utf-8", "\\"{tag}\\"", {{{literal(content)}, {len(content)}}}}},')
    print("};\n  return *files;\n}\n\n}  // namespace sluice")


main()
