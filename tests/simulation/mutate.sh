#!/usr/bin/env bash
# mutate.sh SOURCE COPY OLD NEW: copies SOURCE with NEW in the one place where it has OLD.
set -euo pipefail

main() {
  local source=$1 copy=$2 old=$3 new=$4 text rest
  text=$(<"$source")
  rest=${text#*"$old"}
  if [[ $rest == "$text" || $rest == *"$old"* ]]; then
    echo "$source must have this exactly once; mend the list of mutants: $old" >&2
    return 1
  fi
  printf '%s\n' "${text%%"$old"*}$new$rest" >"$copy"
}

main "$@"
