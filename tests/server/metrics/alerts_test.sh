#!/usr/bin/env bash
# Plays recorded metrics to the alerts of server/metrics/alerts.yml.
set -euo pipefail

promtool check rules server/metrics/alerts.yml
promtool test rules tests/server/metrics/alerts_test.yml
