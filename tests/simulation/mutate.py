#!/usr/bin/env python3
"""mutate.py SOURCE COPY [NAME OLD NEW]...: copies SOURCE with mutants.

Each NAME has its NEW in the one place that has OLD, or in the part of OLD in [[ ]], when $SLUICE_MUTANT is that name.
What ends with ; is a statement, all else an expression.
"""

import re
import sys

SWITCH = """#include <cstdlib>
#include <cstring>

namespace sluice {

inline bool IsMutant(const char* name) {
  static const char* const chosen = std::getenv("SLUICE_MUTANT");
  return chosen != nullptr && std::strcmp(chosen, name) == 0;
}

}  // namespace sluice
"""


def switched(name, old, new):
    """Returns the code that is `new` in the mutant and `old` otherwise."""
    if old.endswith(";"):
        return f'{{ if (IsMutant("{name}")) {{ {new} }} else {{ {old} }} }}'
    return f'(IsMutant("{name}") ? ({new}) : ({old}))'


def plant(text, source, name, old, new):
    """Returns `text` with a mutant."""
    before, part, after = re.fullmatch(r"(?s)(.*?)\[\[(.*)\]\](.*)", old).groups() if "[[" in old else ("", old, "")
    place = before + part + after
    if text.count(place) != 1:
        sys.exit(f"{source} must have this exactly once; mend the list of mutants: {place}")
    return text.replace(place, before + switched(name, part, new) + after)


def main():
    source, copy, *planted = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        text = file.read()
    for name, old, new in zip(planted[::3], planted[1::3], planted[2::3]):
        text = plant(text, source, name, old, new)
    with open(copy, "w", encoding="utf-8") as file:
        file.write(SWITCH + text)


if __name__ == "__main__":
    main()
