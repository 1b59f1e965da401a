"""Finds the sentences of programs in their sources: the string literals of a statement, joined as the program joins them."""

import ast
import re

# Stands for what the program puts between two literals. A literal cannot hold it.
GAP = "\0"

_CPP = re.compile(r"//[^\n]*|/\*.*?\*/|#include[^\n]*"
                  r'|(?P<text>"(?:[^"\\\n]|\\.)*")|\'(?:[^\'\\]|\\.)\'|(?P<end>[;{}])|(?P<other>[^\s"\'/;{}#]+|\S)', re.S)
_FORMAT = re.compile(r"%(?:(?P<percent>%)|[-+ #0]*[\d*]*(?:\.[\d*]+)?[a-z])")


def of_cpp(text):
    """Returns the text of each statement that has literals, with GAP for each value between them."""
    statements = []
    said = between = ""
    for found in _CPP.finditer(text):
        if found["text"]:
            literal = ast.literal_eval(found["text"])
            said += (GAP if said and between.strip(",<") else "") + _filled(literal)
            between = ""
        elif found["end"]:
            statements.append(said)
            said = between = ""
        elif found["other"]:
            between += found["other"]
    statements.append(said)
    return [statement for statement in statements if statement]


def _filled(literal):
    """Returns a literal of printf's kind with GAP for its values."""
    return _FORMAT.sub(lambda found: found["percent"] or GAP, literal)


def of_python(text):
    """Returns each literal, with GAP for the values of an f-string."""
    return [_of_node(node) for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Constant, ast.JoinedStr))]


def _of_node(node):
    if isinstance(node, ast.JoinedStr):
        return "".join(_of_node(value) if isinstance(value, ast.Constant) else GAP for value in node.values)
    return node.value if isinstance(node.value, str) else ""


def says(statement, quoted):
    """Whether a statement has all parts of a quoted sentence, in their order; … stands for anything between them."""
    place = 0
    for part in quoted.split("…"):
        part = part.strip(" ")
        found = statement.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return True
