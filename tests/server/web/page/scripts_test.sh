#!/usr/bin/env bash
# What the page's scripts compute, without a browser.
set -euo pipefail

if ! command -v node >/dev/null; then
  echo "skipped, because Node.js is missing: \`tools/setup page\` installs it"
  exit
fi
node tests/server/web/page/scripts_test.mjs server/web/page/files
