#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: man_lint.sh PAGE...     mandoc finds nothing to warn about in the pages
set -uo pipefail
command -v mandoc >/dev/null || { echo "SKIP: mandoc is not installed"; exit 77; }
[ $# -gt 0 ] || { echo "no pages"; exit 1; }
mandoc -Tlint -W warning "$@"
