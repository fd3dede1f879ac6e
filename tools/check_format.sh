#!/bin/bash
# Fails when clang-format would change a C or C++ file, or when a script does not parse.
# Usage: check_format.sh [FOLDER]   (default: this repository; another git tree in the tests)
#        check_format.sh --fix     changes the files instead
set -euo pipefail
how=(--dry-run -Werror --ferror-limit=3)
[ "${1:-}" != --fix ] || { how=(-i) && shift; }
cd "${1:-$(dirname "$0")/..}"
bad=0

files() {
    git ls-files -z --cached --others --exclude-standard -- "$@" |
        while IFS= read -r -d '' f; do [ ! -f "$f" ] || printf '%s\0' "$f"; done
}

files '*.c' '*.h' '*.cc' '*.cu' '*.cuh' |
    xargs -0 -r clang-format --style=file "${how[@]}" || bad=1

while IFS= read -r -d '' f; do
    bash -n "$f" || bad=1
done < <(files '*.sh' .ci/run)

files '*.py' tools/autograph | xargs -0 -r python3 -c '
import ast, sys
for name in sys.argv[1:]:
    ast.parse(open(name, encoding="utf-8").read(), name)' || bad=1

exit $bad
