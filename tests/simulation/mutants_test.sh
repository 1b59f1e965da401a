#!/usr/bin/env bash
# mutants_test.sh MUTATED MUTANT…: the simulation must find every mutant, and nothing wrong where none is turned on.
# Prints which seed found what; one test case per mutant.
set -euo pipefail

readonly SEEDS=1000
readonly VIOLATION=1
readonly ABORTED=134  # by SIGABRT, after a CHECK that failed

CASES='' FAILURES=0

# record CASE PROBLEM: notes a test case, which passed if there is no problem.
record() {
  local verdict=''
  if [[ -n $2 ]]; then
    verdict="<failure message=\"$2\"/>"
    FAILURES=$((FAILURES + 1))
  fi
  CASES+="  <testcase classname=\"Mutants\" name=\"$1\">$verdict</testcase>"$'\n'
}

check_unmutated() {
  local problem=''
  "$MUTATED" --jobs=1 --seeds="$SEEDS" >"$OUTPUT" || problem="breaks the contract, see simulation_test"
  record Unmutated "$problem"
  tail -n 1 "$OUTPUT"
}

check_mutant() {
  local name=$1 code=0 seed rule check problem=''
  SLUICE_MUTANT=$name "$MUTATED" --jobs=1 --seeds="$SEEDS" >"$OUTPUT" 2>"$ERRORS" || code=$?
  seed=$(sed -nE 's/.*broken\. seed ([0-9]+):.*/\1/p' "$OUTPUT")
  rule=$(sed -n '/^Violation at/,/^Replay/p' "$OUTPUT" | sed -n '2s/^ *//p')
  check=$(sed -nE 's/.*(Check failed: |RAW: )(.*)/\1\2/p' "$ERRORS" | sed -n 1p)
  if ((code == ABORTED)) && [[ -n $check ]]; then
    seed='-' rule=$check
  elif ((code != VIOLATION)); then
    problem="not found in $SEEDS seeds"
    seed='-' rule="$problem (exit code $code)"
  fi
  record "$name" "$problem"
  printf '%-30s  %5s  %.110s\n' "$name" "$seed" "$rule"
}

main() {
  local mutant
  readonly MUTATED=$1
  shift
  OUTPUT=$(mktemp) ERRORS=$(mktemp)
  trap 'rm -f "$OUTPUT" "$ERRORS"' EXIT
  check_unmutated
  printf '%-30s  %5s  %s\n' mutant seed violation
  for mutant in "$@"; do check_mutant "$mutant"; done
  printf '<testsuites>\n<testsuite name="Mutants">\n%s</testsuite>\n</testsuites>\n' "$CASES" \
    >"${XML_OUTPUT_FILE:-/dev/null}"
  ((FAILURES == 0))
}

main "$@"
