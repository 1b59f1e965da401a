#!/usr/bin/env bash
# mutate.sh SOURCE COPY [NAME OLD NEW]…: copies SOURCE with mutants. Each NAME has its NEW in the one place that has
# OLD, or in the part of OLD in [[ ]], when $SLUICE_MUTANT is that name. What ends with ; is a statement, all else an
# expression.
set -euo pipefail

readonly SWITCH='#include <cstdlib>
#include <cstring>

namespace sluice {

inline bool IsMutant(const char* name) {
  static const char* const chosen = std::getenv("SLUICE_MUTANT");
  return chosen != nullptr && std::strcmp(chosen, name) == 0;
}

}  // namespace sluice
'

# Prints the code that is `new` in the mutant and `old` otherwise.
switched() {
  local name=$1 old=$2 new=$3
  if [[ $old == *\; ]]; then
    printf '%s' "{ if (IsMutant(\"$name\")) { $new } else { $old } }"
  else
    printf '%s' "(IsMutant(\"$name\") ? ($new) : ($old))"
  fi
}

# Plants a mutant in TEXT.
plant() {
  local name=$1 old=$2 new=$3 before='' after='' place rest
  if [[ $old == *'[['*']]'* ]]; then
    before=${old%%'[['*} after=${old##*']]'}
    old=${old#*'[['}
    old=${old%']]'*}
  fi
  place=$before$old$after
  rest=${TEXT#*"$place"}
  if [[ $rest == "$TEXT" || $rest == *"$place"* ]]; then
    echo "$SOURCE must have this exactly once; mend the list of mutants: $place" >&2
    return 1
  fi
  TEXT=${TEXT%%"$place"*}$before$(switched "$name" "$old" "$new")$after$rest
}

main() {
  SOURCE=$1
  local copy=$2
  TEXT=$(<"$SOURCE")
  shift 2
  while (($# > 0)); do
    plant "$1" "$2" "$3"
    shift 3
  done
  printf '%s\n' "$SWITCH$TEXT" >"$copy"
}

main "$@"
