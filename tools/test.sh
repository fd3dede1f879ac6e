#!/bin/bash
# Checks, builds and tests everything; the last line is 'N passed, N failed[, N skipped]'.
# Usage: test.sh            format, text, layers, build, tests; each check counts as one case
#        test.sh SANITIZER  asan, ubsan or tsan: proves that it catches a planted bug, then tests
set -euo pipefail
cd "$(dirname "$0")/.."
config=${1:-}
flags=(--keep_going --noshow_progress --ui_event_filters=-info --show_result=0)
[ -z "$config" ] || flags+=("--config=$config")
checks=()

case $config in
'' | asan | ubsan | tsan) ;;
*) echo "test.sh: no configuration '$config'; asan, ubsan, tsan or none" >&2 && exit 2 ;;
esac

# check NAME COMMAND...: goes on after a failure, so that one run tells everything.
check() {
    local name=$1 start=$SECONDS state=ok
    shift
    "$@" || state=failed
    checks+=("$state:$name")
    echo "$name: $state ($((SECONDS - start)) s)"
}

./tools/install.sh tests

if [ -z "$config" ]; then
    check format ./tools/check_format.sh
    check text ./tools/check_text.sh
    check layers ./tools/check_layers.py
    check build bazel build "${flags[@]}" //...
else
    check "planted bug ($config)" ./tests/planted/prove.sh "$config"
fi

# Tests that only a person starts are tagged manual; ones that a sanitizer cannot run, no-SANITIZER.
labels=$(bazel query --keep_going --noshow_progress --ui_event_filters=-info \
    "tests(//...) except attr('tags', '\\b(manual${config:+|no-$config})\\b', //...)") ||
    checks+=("failed:bazel query")
filters=()
[ -z "$config" ] || filters+=("--test_tag_filters=-no-$config" --build_tests_only)
status=0
bazel test "${flags[@]}" "${filters[@]}" --test_summary=terse //... || status=$?
# 3 is "a test failed", which the count must tell; everything else is a build that failed.
[ $status = 0 ] || [ $status = 3 ] || checks+=("failed:bazel test //...")

logs=$(bazel info ${config:+"--config=$config"} bazel-testlogs 2>/dev/null)
./tools/count_tests.py "$logs" "${checks[@]}" <<<"$labels" || exit 1
if [ $status = 3 ]; then
    # The log of a target that failed names no failed case: its last line would hide that.
    ./tools/count_tests.py "$logs" "${checks[@]}" "failed:a target whose log names no failed case" \
        <<<"$labels"
fi
