#!/bin/bash
# Can the fuzzers fail? Builds each with a planted fault (its #ifdef says which) and expects it red.
# Usage: prove_fuzz.sh [BAZEL STARTUP OPTION...]   exit status 0: every fault was found
set -uo pipefail
cd "$(dirname "$0")/../.."
missed=0

# caught FAULT TARGET: the sound fuzzer passes, the one with the fault fails.
caught() {
    local flags=(--noshow_progress --test_output=errors --symlink_prefix=/)
    bazel "${startup[@]}" test "${flags[@]}" "//tests/fuzz:$2" >/dev/null 2>&1 ||
        { echo "$2 fails without a fault" && missed=1 && return; }
    bazel "${startup[@]}" test "${flags[@]}" --copt="-DAG_MUTANT_$1" "//tests/fuzz:$2" >"$out" 2>&1
    # 3: it was built, and the test failed.
    if [ $? = 3 ]; then
        echo "$1: caught by $2: $(grep -a -m 1 -A 2 ': Failure' "$out" | tr '\n' ' ')"
    else
        echo "$1: NOT caught by $2" && missed=1
    fi
}

startup=("$@")
out=$(mktemp)
trap 'rm -f "$out"' EXIT
caught OPTION_UNBOUNDED options_fuzz
caught UTF8_SURROGATES json_fuzz
caught PENDING_PRUNED policy_fuzz
caught THUNK_ANEW names_fuzz
exit $missed
