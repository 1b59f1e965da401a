# shellcheck shell=bash
# Shell functions that the tools source. They set up the machine, run bazel, and say how far the work is.
#
# Bazel's own messages go to a log file, which is shown only when something fails. A terminal sees the progress
# on one line that changes. Elsewhere, in a log file or a pipe, a new line appears about every ten seconds.
# When the tool ends, for whatever reason, it stops the processes that it started in the background, and removes
# its temporary files.

SLUICE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly SLUICE_ROOT
readonly SLUICE_TOOL=${0##*/}
readonly SLUICE_SECONDS_BETWEEN_LINES=10

_SLUICE_TEMPORARY=()
trap sluice_clean_up EXIT
# Ctrl-C and kill end the tool by its exit, so that it cleans up.
trap 'exit 130' INT
trap 'exit 143' TERM

# sluice_clean_up: stops background jobs and removes temporary files. A tool with its own EXIT trap calls it there.
sluice_clean_up() {
  trap '' INT TERM
  local jobs=() waited
  mapfile -t jobs < <(jobs -p)
  if ((${#jobs[@]})); then
    kill "${jobs[@]}" 2>/dev/null || true
    for ((waited = 0; waited < 50; ++waited)); do
      kill -0 "${jobs[@]}" 2>/dev/null || break
      sleep 0.1
    done
    kill -9 "${jobs[@]}" 2>/dev/null || true
    wait "${jobs[@]}" 2>/dev/null || true
  fi
  ((${#_SLUICE_TEMPORARY[@]} == 0)) || rm -rf "${_SLUICE_TEMPORARY[@]}"
}

# sluice_temporary VARIABLE KIND [OPTION]: creates a temporary file, or with -d a directory, sets VARIABLE to its
# path, and removes it when the tool ends.
sluice_temporary() {
  local path
  path=$(mktemp ${3:+"$3"} "${TMPDIR:-/tmp}/sluice-$2.XXXXXX")
  _SLUICE_TEMPORARY+=("$path")
  printf -v "$1" %s "$path"
}

# sluice_setup [KIND]: installs what is missing.
sluice_setup() {
  "$SLUICE_ROOT/tools/setup" "$@"
}

# sluice_build TARGET…: builds. On failure it shows the compiler's messages and returns bazel's status.
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

# sluice_bin [OPTION…]: prints the directory of the programs that were built with these options. It asks bazel,
# since the link bazel-bin follows the last build, which may be a debug build.
sluice_bin() {
  (cd "$SLUICE_ROOT" && bazel info "$@" bazel-bin 2>/dev/null)
}

# sluice_bazel COMMAND ARGUMENT…: returns bazel's status and leaves its messages in the file
# $SLUICE_LOG, which the caller shows or removes.
sluice_bazel() {
  local command=$1 doing=building
  shift
  [[ $command == test ]] && doing=testing
  sluice_temporary SLUICE_LOG bazel
  # Debian's bazel is set to tell the steps of its sandbox, a hundred lines before each error.
  (cd "$SLUICE_ROOT" &&
    bazel "$command" --nosandbox_debug --color=no --curses=no --show_progress_rate_limit=2 "$@") 2>&1 |
    sluice_follow "$SLUICE_LOG" "$doing" _sluice_bazel_progress
  return "${PIPESTATUS[0]}"
}

# Sets PROGRESS from a line of bazel's, or fails if the line does not tell progress.
_sluice_bazel_progress() {
  local counted='^\[([0-9,]+) / ([0-9,]+)\] *(.*)' reading='^(Loading:|Analyzing:)'
  if [[ $1 =~ $counted ]]; then
    PROGRESS="${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} done" DETAIL=${BASH_REMATCH[3]}
  elif [[ $1 =~ $reading ]]; then
    PROGRESS='reading the build files' DETAIL=
  else
    return 1
  fi
}

# sluice_take_quiet ARGUMENT…: sets ARGUMENTS to all of them but --quiet. With that, nothing says how far the work is.
sluice_take_quiet() {
  local argument
  ARGUMENTS=()
  for argument in "$@"; do
    if [[ $argument == --quiet ]]; then SLUICE_QUIET=true; else ARGUMENTS+=("$argument"); fi
  done
}

# sluice_counted DOING COMMAND…: runs a command or a function, and says how far it is. It tells that by sluice_count, or
# by the same line on stderr. Returns its status. A function ends at the first command that fails, unless sluice_counted is
# part of a condition.
sluice_counted() {
  local doing=$1 status=0
  shift
  set +e # After "||" instead, errors in the function would not end it.
  {
    (
      set -e
      "$@"
    ) 2>&1 >&3 3>&- | sluice_follow /dev/null "$doing" _sluice_counted_progress
    status=${PIPESTATUS[0]}
  } 3>&1
  set -e
  return "$status"
}

# sluice_count DONE TOTAL WHAT: for a function that sluice_counted runs. WHAT was done last, in few words.
sluice_count() { printf 'counted %s of %s: %s\n' "$1" "$2" "$3" >&2; }

# Sets PROGRESS and DETAIL from a line of sluice_count, and shows any other line.
_sluice_counted_progress() {
  local counted='^counted ([0-9]+) of ([0-9]+): (.*)$'
  if [[ $1 =~ $counted ]]; then
    PROGRESS="${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} done" DETAIL=${BASH_REMATCH[3]}
  else
    printf '%s%s\n' "$([[ ! -t 2 ]] || printf '\r\033[K')" "$1" >&2
  fi
}

# sluice_follow LOG DOING PARSE: reads a command's output from stdin and says on stderr how far it is. PARSE is a
# function: it sets PROGRESS and DETAIL from a line, or fails, and the line goes to the file LOG. Says nothing if
# SLUICE_QUIET is true.
sluice_follow() {
  local log=$1 doing=$2 parse=$3 line='' part='' status since=$SECONDS told=$SECONDS terminal=false
  local PROGRESS='' DETAIL='' quiet=${SLUICE_QUIET:-false}
  [[ -t 2 ]] && terminal=true
  "$quiet" && terminal=false
  # The command ends first, and says why.
  trap '' INT
  while true; do
    status=0
    IFS= read -r -t 1 part || status=$?
    line+=$part
    if ((status == 0)); then
      "$parse" "$line" || printf '%s\n' "$line" >>"$log"
      line=
    fi
    if "$terminal"; then
      local text
      text="$(_sluice_progress_line "$doing" "$((SECONDS - since))")${DETAIL:+: $DETAIL}"
      printf '\r\033[K%.*s' "$((${COLUMNS:-80} - 1))" "$text" >&2
    elif ! "$quiet" && ((SECONDS - told >= SLUICE_SECONDS_BETWEEN_LINES)); then
      _sluice_progress_line "$doing" "$((SECONDS - since))" >&2
      told=$SECONDS
    fi
    # More than 128: no line within the time.
    ((status == 0 || status > 128)) || break
  done
  [[ -z $line ]] || printf '%s\n' "$line" >>"$log"
  ! "$terminal" || printf '\r\033[K' >&2
}

# Prints for example "demo: building, 120 of 205 done, 3 min 10 s".
_sluice_progress_line() {
  local seconds=$2 time
  time="$((seconds % 60)) s"
  ((seconds < 60)) || time="$((seconds / 60)) min $time"
  printf '%s: %s, %s%s\n' "$SLUICE_TOOL" "$1" "${PROGRESS:+$PROGRESS, }" "$time"
}

# Shows the start of the log, where the first error stands: later ones often follow from it.
sluice_show_log() {
  local lines=100 saved
  head -n "$lines" "$SLUICE_LOG" >&2
  if (($(wc -l <"$SLUICE_LOG") > lines)); then
    saved=$(mktemp "${TMPDIR:-/tmp}/sluice-log.XXXXXX")
    cp "$SLUICE_LOG" "$saved"
    echo "The whole of this log: $saved" >&2
  fi
  rm -f "$SLUICE_LOG"
}
