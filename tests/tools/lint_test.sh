#!/usr/bin/env bash
# Plants one finding of each kind in a tree of its own and expects tools/lint to report it. A check whose program
# this machine does not have is left out, except that of the documents.
set -euo pipefail

FAILURES=0

# lint STATUS ARGUMENT…: runs tools/lint in the scratch tree, leaves what it prints in OUTPUT, and expects STATUS.
lint() {
  local expected=$1 status=0
  shift
  OUTPUT=$(tools/lint "$@" 2>&1) || status=$?
  ((status == expected)) || fail "tools/lint $* exits with $status, expected $expected"
}

fail() {
  printf 'FAILED: %s\n%s\n' "$1" "${OUTPUT-}"
  FAILURES=$((FAILURES + 1))
}

# reports CHECK TEXT…: that check finds something, and prints each TEXT.
reports() {
  local check=$1 status=0 text
  shift
  OUTPUT=$(tools/lint "$check" 2>&1) || status=$?
  if [[ $OUTPUT == *MISSING* && $check != docs ]]; then
    echo "left out: $check: $OUTPUT"
    return
  fi
  ((status == 1)) || fail "tools/lint $check exits with $status, expected 1"
  for text in "$@"; do [[ $OUTPUT == *"$text"* ]] || fail "tools/lint $check does not report: $text"; done
}

make_tree() {
  local tree
  tree=$(dirname "$(readlink -f WORKSPACE)")
  SCRATCH=$(mktemp -d)
  trap 'rm -rf "$SCRATCH"' EXIT
  mkdir -p "$SCRATCH"/{tools,common/base,common/figures,proto/sluice/v1}
  cp -r "$tree"/tools/{lint,lib.sh,linting} "$SCRATCH/tools"
  cp "$tree"/{.clang-format,.clang-tidy} "$SCRATCH"
  cp "$tree/proto/buf.yaml" "$SCRATCH/proto"
  cd "$SCRATCH"
  printf '#!/usr/bin/env bash\n' >tools/setup # Installs nothing.
  chmod +x tools/setup
  cat >README.md <<'MARKDOWN'
# A page

See [this](#a-page), [that](common/base/one.cc), `common/base/one.cc` and `//common/base:one`. Write `common/base/new.cc`.
<!-- not here: common/base/new.cc -->

```
tools/lint --all format         # a flag of ours
bazel build --foreign //common/...
```
MARKDOWN
  # shellcheck disable=SC2016
  (cd common/figures && printf '`tools/gone --no-such-flag //nowhere/...` on 2026-11-21\n' >README.md)
  printf 'int One() { return 1; }\n' >common/base/one.cc
  printf 'cc_library(\n    name = "one",\n    srcs = ["one.cc"],\n)\n' >common/base/BUILD.bazel
  printf '// One message.\nsyntax = "proto3";\n\npackage sluice.v1;\n\n// A message.\nmessage One {}\n' \
    >proto/sluice/v1/one.proto
  git init -q
  git add .
  git -c user.name=test -c user.email=test@localhost commit -qm 'A tidy tree'
}

plant_findings() {
  printf 'int   Two( ){return 2;}\n' >common/base/two.cc
  cat >common/base/moved.cc <<'CODE'
#include <string>
#include <utility>

std::string Twice(std::string text) {
  const std::string first = std::move(text);
  return first + text;
}
CODE
  # shellcheck disable=SC2016
  printf '#!/usr/bin/env bash\nrm $1\n' >tools/remove
  printf '// Two messages.\nsyntax = "proto3";\n\npackage sluice.v1;\n\nmessage two {}\n' \
    >proto/sluice/v1/two.proto
  printf 'import os\n' >tools/two.py
  printf 'cc_library(name="two",srcs=["two.cc"])\n' >common/BUILD.bazel
  cat >common/README.md <<'MARKDOWN'
# Another page

See [this](#no-heading), [that](base/none.h), `common/base/none.cc` and `none_main.cc`.

```
bazel build //common/base:none //nowhere/...
tools/lint --no-such-flag --sluice-gone
tools/none
```
MARKDOWN
}

# A class in an unnamed namespace, with a field whose annotation looks like a method, and a deleted method.
plant_large() {
  local i
  {
    printf 'namespace {\nclass Large {\n  Large(const Large&) = delete;\n  int size_ ABSL_GUARDED_BY(mutex_) = 0;\n'
    for i in {1..26}; do printf '  int F%s() const ABSL_LOCKS_EXCLUDED(mutex_);\n' "$i"; done
    printf '};\n}\nint Large::F1() const { return 0; }\nint Long() {\n'
    for i in {1..59}; do printf '  Do();\n'; done
    printf '}\n'
    for i in {1..800}; do printf '//\n'; done
  } >common/base/large.cc
}

main() {
  make_tree
  lint 0 docs
  lint 2 --no-such-flag
  lint 2 no-such-check
  lint 2 --base=no-such-revision
  XDG_CACHE_HOME=$SCRATCH/empty lint 3 proto build

  plant_findings
  reports docs \
    'common/README.md:3: links to #no-heading' \
    'common/README.md:3: links to base/none.h' \
    'common/README.md:3: names common/base/none.cc' \
    'common/README.md:3: names none_main.cc' \
    'common/README.md:6: names //common/base:none' \
    'common/README.md:6: names //nowhere/...' \
    'common/README.md:7: names the flag --no-such-flag' \
    'common/README.md:7: names the flag --sluice-gone' \
    'common/README.md:8: names tools/none'
  reports format 'common/base/two.cc:1'
  reports tidy 'common/base/moved.cc:6' 'bugprone-use-after-move'
  reports shell 'tools/remove:2' 'SC2086'
  reports proto 'proto/sluice/v1/two.proto:6' 'PascalCase'
  reports python 'tools/two.py:1' 'imported but unused'
  reports build 'common/BUILD.bazel'
  plant_large
  reports shape 'large.cc:1: has 894 lines' 'large.cc:2: Large has 26 methods' 'large.cc:34: Long has 61 lines'

  tools/lint --fix format build >/dev/null || true
  lint 0 --fix format
  ((FAILURES == 0))
}

main
