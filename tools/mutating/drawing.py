"""Draws mutants of C++ sources: one small change each, such as a careless hand makes.

The sources are read as text, without a parser. A change that does not compile is no mutant: it is found out when it
is built, and does not count. Lines of the log are not changed.
"""

import collections
import hashlib
import re

# One change: text[begin:end] of the file `path` becomes `new`. `line` counts from 1.
Mutant = collections.namedtuple("Mutant", "id path line kind begin end new before after")

_HIDDEN = re.compile(r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])*\'|'
                     r'^[ \t]*#[^\n]*', re.DOTALL | re.MULTILINE)
_CONDITION = re.compile(r"\b(?:if|while) \(")
_OPERATORS = {" == ": " != ", " != ": " == ", " && ": " || ", " || ": " && "}
_BOUNDS = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > "}
_SIGNS = {" + ": " - ", " - ": " + "}
_OPERATOR = re.compile("|".join(re.escape(sign) for sign in (*_OPERATORS, *_BOUNDS, *_SIGNS)))
_CONSTANT = re.compile(r"(?<![\w.'\"])(?:\d+(?:'\d+)*|true|false)(?![\w.'])")
# For people, not for tests.
_LOGGED = re.compile(r"\bV?LOG(?:_[A-Z_]+)?\([^;]*;")
# A statement that begins a line or follows a condition, and ends with the line: no declaration, no jump.
_STATEMENT = re.compile(
    r"(?:^[ ]+|(?<=\) ))(?!return\b|using\b|typedef\b|goto\b|break\b|continue\b|delete\b|case\b|default\b|else\b|if\b|for\b)"
    r"((?:\*|\+\+|--)?[A-Za-z_][\w:]*(?:(?:\.|->|\[|\()[^;\n]*|\s*[-+*/|&^]?=[^=][^;\n]*|\+\+|--);)$", re.MULTILINE)
_SIMPLE = r"[\w.:&*]+(?:->[\w.]+)*(?:\(\))?"
_TWO_ARGUMENTS = re.compile(r"(?<=\()(%s), (%s)(?=\))" % (_SIMPLE, _SIMPLE))


def hide(text):
    """The same text with spaces in comments, directives and between quotes, so that offsets stay."""
    return _HIDDEN.sub(_blank, text)


def _blank(match):
    found = match.group()
    blank = re.sub(r"[^\n]", " ", found)
    return found[0] + blank[1:-1] + found[-1] if found[-1] in "\"'" and found[0] in "\"'R" else blank


def closing(text, begin):
    """The offset of the bracket that closes the one before `begin`."""
    depth = 1
    for offset in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[offset], 0)
        if depth == 0:
            return offset
    return None


def _conditions(code, text):
    for match in _CONDITION.finditer(code):
        end = closing(code, match.end())
        if end is None:
            continue
        begin = match.end() + code[match.end():end].rfind(";") + 1
        begin += len(code[begin:end]) - len(code[begin:end].lstrip())  # after "if (auto x = f(); "
        yield "condition", begin, end, f"!({text[begin:end]})"


def _operators(code, _):
    for match in _OPERATOR.finditer(code):
        sign = match.group()
        for kind, table in (("condition", _OPERATORS), ("off by one", _BOUNDS), ("sign", _SIGNS)):
            if sign in table:
                yield kind, match.start(), match.end(), table[sign]


def _constants(code, _):
    for match in _CONSTANT.finditer(code):
        word = match.group()
        new = {"true": "false", "false": "true"}.get(word) or str(int(word.replace("'", "")) + 1)
        yield "constant", match.start(), match.end(), new


def _statements(code, _):
    for match in _STATEMENT.finditer(code):
        before = code[:match.start(1)].rstrip()
        if before.endswith((";", "{", "}", ")", "else")):  # it does not continue a line
            yield "statement", match.start(1), match.end(1), ";"


def _arguments(code, _):
    for match in _TWO_ARGUMENTS.finditer(code):
        first, second = match.groups()
        if first != second:
            yield "arguments", match.start(), match.end(), f"{second}, {first}"


def mutants_of(path, text):
    """All mutants of a file, in the order of their places. Ids stay when lines elsewhere in the file change."""
    code = hide(text)
    logged = [match.span() for match in _LOGGED.finditer(code)]
    found = []
    seen = collections.Counter()
    for sites in (_conditions, _operators, _constants, _statements, _arguments):
        for kind, begin, end, new in sites(code, text):
            if "\n" in code[begin:end] or any(start <= begin < stop for start, stop in logged):
                continue
            start, stop = text.rfind("\n", 0, begin) + 1, text.find("\n", end)
            before = text[start:stop].strip()
            after = (text[start:begin] + new + text[end:stop]).strip()
            name = "|".join((path, kind, before, after))
            seen[name] += 1
            digest = hashlib.sha1(f"{name}|{seen[name]}".encode()).hexdigest()[:10]
            line = text.count("\n", 0, begin) + 1
            found.append(Mutant(digest, path, line, kind, begin, end, new, before, after))
    return sorted(found, key=lambda mutant: (mutant.begin, mutant.end, mutant.new))


def draw(sources, seed, count):
    """`count` mutants of `sources`, pairs of a path and its text. More of one seed begin with the same ones.

    Each mutant has its place in the order of a seed, whatever else there is: when sources change, the others stay drawn.
    """
    every = [mutant for path, text in sources for mutant in mutants_of(path, text)]
    return sorted(every, key=lambda mutant: hashlib.sha1(f"{seed}|{mutant.id}".encode()).digest())[:count]


def apply(mutant, text):
    return text[:mutant.begin] + mutant.new + text[mutant.end:]
