"""Writes mutants into C++ text so that each sleeps until the program's environment names it (mutant schemata).

A mutant changes a piece of an expression or drops a statement. The expression becomes

    (SluiceMutant(17) ? (with the change) : (as it was))

and the statement `{ if (!SluiceMutant(18)) statement }`. A constant of `constexpr` becomes a function, because its
value is known only when the program runs. All mutants of a tree are so compiled at once. SLUICE_MUTANT=17 in a process's
environment plays mutant 17, and the processes that it starts inherit that. SLUICE_MUTANTS_REACHED=FOLDER lets each
process make a folder named by the number of each mutant in whose place it comes.

Some changes cannot wait until run time, such as an array's size. The compiler refuses them, perhaps deep in a header of
the standard library, and `blamed` tells from its messages which mutants they are.
"""

import collections
import re

import drawing

_DECLARATION = """#ifndef SLUICE_MUTANT_
#define SLUICE_MUTANT_
#include <sys/stat.h>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
inline void SluiceMutantReached(const char* folder, int number) {
  static std::atomic<bool> noted[1 << 16];
  if (noted[number].exchange(true)) return;
  const int before = errno;
  char path[4096];
  std::snprintf(path, sizeof(path), "%s/%d", folder, number);
  mkdir(path, 0777);  // needs no descriptor: a process may have none left
  errno = before;
}
inline bool SluiceMutant(int number) {
  static const char* const chosen = std::getenv("SLUICE_MUTANT");
  static const int played = chosen == nullptr ? -1 : std::atoi(chosen);
  static const char* const folder = std::getenv("SLUICE_MUTANTS_REACHED");
  if (folder != nullptr) SluiceMutantReached(folder, number);
  return number == played;
}
#endif
"""

# A piece of text that is written in another way, and the numbers of the mutants that change something in it. For the
# declaration of a constant, `constant` is the match of _CONSTANT.
_Region = collections.namedtuple("_Region", "begin end numbers constant")

_WORD_BEFORE = re.compile(r"\s*(?:return|else|do|throw)\b")
_HEAD_BEFORE = re.compile(r"\s*(?:if|while|for) \(")
_CONSTANT = re.compile(r"\b(?:(?:static|inline) )*constexpr ([\w:<>, ]+) (\w+) = ([^;]*);")
# A line of gcc or clang that begins with a place. What has no such word is gcc's way to an instantiation, before its error.
_PLACE = re.compile(r"(?:\./)?([\w./+-]+):(\d+):(\d+): +(?:fatal )?((?:error|note|warning): )?(.*)")
_FILE = re.compile(r"(?:In file included from| +from) (?:\./)?([\w./+-]+):\d+|(?:\./)?([\w./+-]+): (?:In|At) ")
_INSTANTIATION = re.compile(r".*(?:in instantiation of|requested here)")  # clang's way there, behind its error


class SwitchedFile:
    """A source with its mutants in it. `mutants` maps their numbers to them."""

    def __init__(self, path, text, mutants):
        self._text = text
        self.mutants = mutants
        self._pieces, self._length = [], 0
        self._spans = []  # begin and end in what was written, and the numbers of the mutants that asked for it
        regions = self._regions(path, drawing.hide(text))
        self._render(0, len(text), regions)
        for name in {region.constant[2] for region in regions if region.constant}:
            self._put(f"\n#undef {name}\n")
        body = "".join(self._pieces)
        self._lines = [0] + [match.end() for match in re.finditer("\n", body)]
        self.text = f'{_DECLARATION}#line 1 "{path}"\n{body}'

    def blamed(self, line, column):
        """The numbers of the mutants that asked for the text at this place."""
        if line > len(self._lines):
            return ()
        offset = self._lines[line - 1] + column - 1
        around = [span for span in self._spans if span[0] <= offset < span[1]]
        return min(around, key=lambda span: span[1] - span[0])[2] if around else ()

    def blamed_for_line(self, line):
        """The numbers of the mutants that asked for some of the text of this line."""
        if line > len(self._lines):
            return ()
        begin, end = [*self._lines, self._length][line - 1:line + 1]
        return {number for span in self._spans if span[0] < end and begin < span[1] for number in span[2]}

    def _regions(self, path, code):
        """Outer ones before those that lie in them."""
        numbers = collections.defaultdict(list)
        for number, mutant in self.mutants.items():
            numbers[_region_of(mutant, code)].append(number)
        regions = [_Region(begin, end, tuple(found), None) for (begin, end), found in numbers.items()]
        if path.endswith(".cc"):  # what a header declares is used elsewhere, too
            for match in _CONSTANT.finditer(code):
                inside = [number for number, mutant in self.mutants.items()
                          if match.start(3) <= mutant.begin and mutant.end <= match.end(3)]
                if inside:
                    regions.append(_Region(match.start(), match.end(), tuple(inside), match))
        return sorted(regions, key=lambda region: (region.begin, -region.end))

    def _put(self, text):
        self._pieces.append(text)
        self._length += len(text)

    def _render(self, begin, end, regions):
        """Writes text[begin:end], in which `regions` lie."""
        while regions:
            region = regions[0]
            self._put(self._text[begin:region.begin])
            start = self._length
            self._write(region, [other for other in regions[1:] if other.end <= region.end])
            self._spans.append((start, self._length, region.numbers))
            begin = region.end
            regions = [other for other in regions[1:] if other.begin >= region.end]
        self._put(self._text[begin:end])

    def _write(self, region, inner):
        number, constant = region.numbers[0], region.constant
        if constant is not None:
            name = constant[2]
            self._put(f"const auto {name} = []() -> {constant[1]} {{ return ")
            self._render(constant.start(3), constant.end(3), inner)
            self._put(f"; }};\n#define {name} {name}()\n")
        elif self.mutants[number].kind == "statement":
            self._put(f"{{ if (!SluiceMutant({number})) ")
            self._render(region.begin, region.end, inner)
            self._put(" }")
        else:
            self._write_expression(region, inner)

    def _write_expression(self, region, inner):
        negated = any(_negates(self.mutants[number]) for number in region.numbers)
        opening = "static_cast<bool>(" if negated else "("
        self._put("(")
        for number in region.numbers:
            self._put(f"SluiceMutant({number}) ? ")
            start, mutant = self._length, self.mutants[number]
            self._put(opening + self._text[region.begin:mutant.begin] + mutant.new + self._text[mutant.end:region.end] + ")")
            self._spans.append((start, self._length, (number,)))
            self._put(" : ")
        self._put(opening)
        self._render(region.begin, region.end, inner)
        self._put("))")


def _negates(mutant):
    return mutant.new.startswith("!(")


def _region_of(mutant, code):
    """The place of the text that is written in another way for a mutant."""
    if mutant.kind in ("statement", "constant") or _negates(mutant):
        return mutant.begin, mutant.end
    brackets = 1 if mutant.kind == "arguments" else 0
    return expression_around(code, mutant.begin - brackets, mutant.end + brackets)


def expression_around(code, begin, end):
    """The whole expression around code[begin:end]: up to a bracket, a comma, an assignment, or one side of a ?:."""
    left, right = _left_of(code, begin), _right_of(code, end)
    while True:
        word, head = _WORD_BEFORE.match(code, left, begin), _HEAD_BEFORE.match(code, left, begin)
        if word is None and head is None:
            break
        left = word.end() if word is not None else drawing.closing(code, head.end()) + 1
    piece = code[left:right]
    return left + len(piece) - len(piece.lstrip()), right - len(piece) + len(piece.rstrip())


def _left_of(code, at):
    depth = 0
    while at > 0:
        char, before = code[at - 1], code[at - 2:at - 1]
        if char in ")]}":
            if depth == 0 and char == "}" and re.match(r"\s*\n|\s*\w", code[at:at + 80]):
                break  # the end of a block
            depth += 1
        elif char in "([{":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0:
            if char in ";,?" or (char == ":" and before != ":") or (char == "=" and before not in "=!<>"):
                break
            at -= 1 if char in ":=" else 0
        at -= 1
    return at


def _right_of(code, at):
    depth = 0
    while at < len(code):
        char, after = code[at], code[at + 1:at + 2]
        if char in "([{":
            depth += 1
        elif char in ")]}":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0:
            if char in ";,?" or (char == ":" and after != ":"):
                break
            if char == "=" and after != "=" and code[at - 1] not in "=!<>":
                break
            at += 1 if char == ":" else 0
        at += 1
    return at


def switch(texts, mutants):
    """The files that have mutants, by path. `texts` maps paths to texts, and `mutants` numbers to mutants."""
    by_path = collections.defaultdict(dict)
    for number, mutant in mutants.items():
        by_path[mutant.path][number] = mutant
    return {path: SwitchedFile(path, texts[path], found) for path, found in by_path.items()}


class _Error:
    """One error of a compiler: its places, each with a path, a line and a column, and the files that it names."""

    def __init__(self):
        self.own, self.way, self.notes, self.files = [], [], [], []

    def guilty(self, files):
        """Those at the place of the error; else of the instantiations that led to it; else of its notes; else on one of
        these lines; else all in a file that it names: what one changes may be refused deep in another's header."""
        for places in (self.own, self.way, self.notes):
            found = {number for path, line, column in places if path in files for number in files[path].blamed(line, column)}
            if found:
                return found
        places = [place for place in (*self.own, *self.way, *self.notes) if place[0] in files]
        found = {number for path, line, _ in places for number in files[path].blamed_for_line(line)}
        named = {path for path, _, _ in places} | set(self.files)
        return found or {number for path in named if path in files for number in files[path].mutants}


def _errors(output):
    """The errors among the messages. What gcc writes before an error belongs to it, and notes to the error before them."""
    errors = [_Error()]
    for line in output.splitlines():
        place, file = _PLACE.match(line), _FILE.match(line)
        if not place and not file:
            continue
        kind = place[4] if place else None
        if errors[-1].own and kind != "note: ":
            errors.append(_Error())
        error = errors[-1]
        if file and not place:
            error.files.append(file[1] or file[2])
        elif kind == "error: ":
            error.own.append((place[1], int(place[2]), int(place[3])))
        elif kind is None or _INSTANTIATION.match(place[5]):
            error.way.append((place[1], int(place[2]), int(place[3])))
        elif kind == "note: ":
            error.notes.append((place[1], int(place[2]), int(place[3])))
    return [error for error in errors if error.own]


def blamed(files, output):
    """The numbers of the mutants that a compiler's errors are about."""
    return {number for error in _errors(output) for number in error.guilty(files)}
