"""Follows the links of Markdown in a folder, as a reader of that folder would."""

import os
import re
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "tools", "linting"))
# pylint: disable=wrong-import-position
from check_docs import CODE_SPAN, LINK, anchors_of, lines_of  # noqa: E402


def pages_in(folder):
    for place, _, names in os.walk(folder):
        yield from (os.path.join(place, name) for name in names if name.endswith(".md"))


def broken_links(folder):
    """Returns "PAGE:LINE: LINK" for each that leads to no file or heading, or to a file outside of the folder."""
    broken = []
    for page in sorted(pages_in(folder)):
        with open(page, encoding="utf-8") as file:
            text = file.read()
        for number, line, is_code in lines_of(text):
            for link in [] if is_code else LINK.findall(CODE_SPAN.sub("code", line)):
                if not leads_somewhere(os.path.realpath(folder), os.path.realpath(page), link.strip("<>")):
                    broken.append(f"{os.path.relpath(page, folder)}:{number}: {link}")
    return broken


def leads_somewhere(folder, page, link):
    if re.match(r"[a-z][a-z+.-]*:", link):
        return True
    path, _, anchor = link.partition("#")
    target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    if not os.path.exists(target) or not (os.path.isabs(path) or (target + "/").startswith(folder + "/")):
        return False
    if not anchor or not target.endswith(".md"):
        return True
    with open(target, encoding="utf-8") as file:
        return anchor in anchors_of(file.read())
