#!/bin/bash
# Shows on a GPU what only a GPU can show, from prebuilt files (tests/gpu/carry.sh makes them).
# Usage: tests/gpu/run.sh [OPTION]... SECTION...     --help lists both
# Ends with "N passed, N failed"; what could not be run counts as failed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/sections.py" "$@"
