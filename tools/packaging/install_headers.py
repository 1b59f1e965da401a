#!/usr/bin/env python3
"""Copies a header and all of the project's headers that it includes, for programs outside of this tree.

Usage: install_headers.py HEADER FOLDER

HEADER, such as worker/torch/torch.h, becomes FOLDER/torch.h. The headers that it includes keep their paths in FOLDER.
The last part of FOLDER goes before these paths: FOLDER/torch.h includes "sluice/worker/job.h" if FOLDER is
/usr/include/sluice. Runs in the top folder of the tree.
"""

import os
import re
import sys

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def closure(header):
    """The header, and the project's headers that it needs, as a set of paths."""
    found, left = set(), [header]
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            with open(path, encoding="utf-8") as file:
                left += [name for name in INCLUDE.findall(file.read()) if os.path.exists(name)]
    return found


def install(header, folder):
    """Copies the headers, and returns their paths."""
    headers = closure(header)
    prefix = os.path.basename(os.path.normpath(folder))

    def renamed(include):
        return f'#include "{prefix}/{include[1]}"' if include[1] in headers else include[0]

    for path in headers:
        target = os.path.join(folder, os.path.basename(path) if path == header else path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(path, encoding="utf-8") as file, open(target, "w", encoding="utf-8") as copy:
            copy.write(INCLUDE.sub(renamed, file.read()))
    return headers


if __name__ == "__main__":
    if len(sys.argv) != 3 or not os.path.exists(sys.argv[1]):
        sys.exit(__doc__)
    install(sys.argv[1], sys.argv[2])
