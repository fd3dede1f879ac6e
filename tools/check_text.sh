#!/bin/bash
# Fails on text that has no place in the repository: paths of somebody's machine, hosts of package
# registries, unfinished work, merge markers, tabs in C, white space at line ends.
# Usage: check_text.sh [FOLDER]   (default: this repository; another git tree in the tests)
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
bad=0

# refuse WHAT PATTERN [PATHSPEC...]: every hit is printed and fails the check. The patterns spell
# letters in brackets, so that this file does not match itself.
refuse() {
    local what=$1 pattern=$2 status=0
    shift 2
    git grep --untracked -InE -e "$pattern" -- "$@" || status=$?
    case $status in
    0) echo "check_text.sh: above: $what" && bad=1 ;;
    1) ;; # no hit
    *) exit "$status" ;;
    esac
}

code=('*.c' '*.h' '*.cc' '*.cu' '*.cuh' '*.S' '*.def')
refuse "a path of a developer's machine" '(^|[^[:alnum:]_.~}-])/([w]ork|[h]ome|[r]oot|[U]sers)/' .
refuse "the host of a package registry" \
    '([p]ypi|[p]ythonhosted|[n]pmjs|[d]eb\.debian|[c]rates|[p]roxy\.golang)\.(org|com|io)' .
refuse "unfinished work" '\b([T]ODO|[F]IXME|[X]XX|[H]ACK)\b' .
refuse "a merge marker" '^(<{7}|>{7}|={7})( |$)' .
# clang-format keeps code within 100 columns; this is for comments, which it leaves alone. In a long
# macro it may put the backslashes further out.
refuse "a line of C over 120 columns" '^.{120,}[^\]$' '*.c' '*.h' '*.cc' '*.cu' '*.cuh' '*.S'
refuse "a tab in C" $'\t' "${code[@]}"
refuse "white space at a line's end" '[[:blank:]]+$' "${code[@]}" '*.sh' '*.py' '*.bzl' '*.md'
exit $bad
