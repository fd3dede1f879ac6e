#!/bin/bash
# Proves that a sanitizer configuration is armed: the planted program runs clean without its bug
# and dies with the sanitizer's own report with it. Usage: prove.sh asan|ubsan|tsan
set -euo pipefail
cd "$(dirname "$0")/../.."
config=$1
flags=(--noshow_progress --ui_event_filters=-info --show_result=0 "--config=$config")
case $config in
asan) report='AddressSanitizer: heap-use-after-free' ;;
ubsan) report='runtime error: signed integer overflow' ;;
tsan) report='ThreadSanitizer: data race' ;;
*) echo "prove.sh: no configuration '$config'" >&2 && exit 2 ;;
esac

bazel build "${flags[@]}" //tests/planted:planted
program=$(bazel info "${flags[@]}" bazel-bin 2>/dev/null)/tests/planted/planted
if ! said=$("$program" none 2>&1); then
    echo "prove.sh: $config: the program fails without its bug: $said" >&2
    exit 1
fi
if said=$("$program" "$config" 2>&1); then
    echo "prove.sh: $config: the planted bug was not caught" >&2
    exit 1
fi
if ! grep -q "$report" <<<"$said"; then
    echo "prove.sh: $config: died, but not with '$report': $said" >&2
    exit 1
fi
