#!/usr/bin/env python3
"""Decodes and encodes every example of testdata/encodings.json with encoding_reference.py and
encoding_reference_encoder.py. One test case for each; those that hold a zstd frame are left out.

Usage: encoding_reference_test.py EXAMPLES
"""

import json
import os
import sys
from xml.sax.saxutils import quoteattr

from encoding_reference import BadChunk, decode
from encoding_reference_encoder import encode


def bits_in(lines):
    return [int(word, 16) for line in lines for word in line.split()]


def difference(what, found, expected):
    """What is wrong with a list; "" if nothing is."""
    if len(found) != len(expected):
        return f"{what}: {len(found)} of them, expected {len(expected)}"
    for i, (x, y) in enumerate(zip(found, expected)):
        if x != y:
            return f"{what}: number {i} is {x:#x}, expected {y:#x}"
    return ""


def check_decoding(case, payload, how):
    try:
        decoded = decode(payload, how)
    except BadChunk as problem:
        return f"is refused: it {problem}" if "decoded" in case else ""
    if "decoded" not in case:
        return "is decoded, and should be refused"
    return difference("bits of elements", decoded, bits_in(case["decoded"]))


def check_encoding(case, payload, how):
    if "values" not in case:
        return ""
    encoded, found = encode(bits_in(case["values"]), case["encoding"], int(case["seed"]),
                            case["columns"])
    if found != how:
        return f"is encoded as {found}, expected {how}"
    return difference("bytes of the payload", encoded, payload)


def check(case):
    """What is wrong with how this case is read and written; "" if nothing is."""
    payload = bytes.fromhex("".join(case["payload"]))
    how = dict(case["how"], seed=int(case["how"]["seed"]))
    return check_decoding(case, payload, how) or check_encoding(case, payload, how)


def report(problems):
    """Writes the XML that bazel expects of a test."""
    with open(os.environ.get("XML_OUTPUT_FILE", os.devnull), "w", encoding="utf-8") as xml_file:
        xml_file.write('<testsuites>\n<testsuite name="EncodingReference">\n')
        for name, problem in problems.items():
            verdict = f"<failure message={quoteattr(problem)}/>" if problem else ""
            xml_file.write(
                f'<testcase classname="EncodingReference" name="{name}">{verdict}</testcase>\n')
        xml_file.write("</testsuite>\n</testsuites>\n")


def main(path):
    with open(path, encoding="utf-8") as text:
        cases = json.load(text)["cases"]
    problems = {case["name"]: check(case) for case in cases if not case["frames"]}
    report(problems)
    failures = {name: problem for name, problem in problems.items() if problem}
    for name, problem in failures.items():
        print(f"{name}: {problem}")
    return 1 if failures or not problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
