# shellcheck shell=bash
# Shell functions of the tools, to be sourced by them. Bazel's chatter goes to a log file that is
# shown only when something fails; a terminal sees it pass by on one line.

SLUICE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly SLUICE_ROOT

# sluice_setup [KIND]: installs what is missing.
sluice_setup() {
  "$SLUICE_ROOT/tools/setup" "$@"
}

# sluice_build TARGET…: builds; on failure shows the compiler's words and returns bazel's status.
sluice_build() {
  local status=0
  sluice_bazel build "$@" || status=$?
  if ((status)); then
    sluice_show_log
  else
    rm -f "$SLUICE_LOG"
  fi
  return "$status"
}

# sluice_bin [OPTION…]: where the programs lie that were built with these options. Asked of bazel, since
# the link bazel-bin follows whoever built last, perhaps a debug build.
sluice_bin() {
  (cd "$SLUICE_ROOT" && bazel info "$@" bazel-bin 2>/dev/null)
}

# sluice_bazel COMMAND ARGUMENT…: returns bazel's status and leaves its words in the file
# $SLUICE_LOG, which the caller shows or removes.
sluice_bazel() {
  local command=$1
  shift
  # Debian's bazel is set to tell the steps of its sandbox, a hundred lines before each error.
  local run=(bazel "$command" --nosandbox_debug --color=no --curses=no)
  SLUICE_LOG=$(mktemp "${TMPDIR:-/tmp}/sluice-bazel.XXXXXX")
  if [[ ! -t 2 ]]; then
    (cd "$SLUICE_ROOT" && "${run[@]}" --noshow_progress "$@") >"$SLUICE_LOG" 2>&1
    return
  fi
  (cd "$SLUICE_ROOT" && "${run[@]}" "$@") 2>&1 | _sluice_follow "$SLUICE_LOG"
  return "${PIPESTATUS[0]}"
}

# Passes the lines of stdin by on one line of the terminal; those that tell more than progress go
# to the file $1.
_sluice_follow() {
  local line progress='^(\[[0-9,]+ / [0-9,]+\]|Loading:|Analyzing:)'
  while IFS= read -r line; do
    [[ $line =~ $progress ]] || printf '%s\n' "$line" >>"$1"
    printf '\r\033[K%.*s' "$((${COLUMNS:-80} - 1))" "$line" >&2
  done
  printf '\r\033[K' >&2
}

# Shows the start of the log, where the first error stands: later ones often follow from it.
sluice_show_log() {
  local lines=100
  head -n "$lines" "$SLUICE_LOG" >&2
  if (($(wc -l <"$SLUICE_LOG") > lines)); then
    echo "The whole of this log: $SLUICE_LOG" >&2
  else
    rm -f "$SLUICE_LOG"
  fi
}
