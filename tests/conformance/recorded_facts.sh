#!/bin/bash
# Does simcuda answer as the recorded driver did? recorded_facts.sh PROGRAM LIBCUDA COMPARE DATA
# Then the comparison itself is tried: a changed fact, a lost file and a stale exception must be red.
set -u
program=$1 library=$2 compare=$3 data=$4
out=$TEST_TMPDIR/facts.txt recorded=$data/h200-580.159.txt exceptions=$data/exceptions.txt
CONFORMANCE_OUT=$out LD_LIBRARY_PATH=$(dirname "$(realpath "$library")") timeout 200 "$program" \
    > "$TEST_TMPDIR/run.log" 2>&1 || tail -40 "$TEST_TMPDIR/run.log"
"$compare" "$recorded" "$out" "$exceptions" 680 || exit 1

must_be_red()
{
    if "$compare" "$1" "$2" "$3" 680 > /dev/null; then
        echo "the comparison cannot fail: $4"
        exit 1
    fi
}
sed 's/^capture.sync_own = .*/capture.sync_own = 0/' "$out" > "$TEST_TMPDIR/changed.txt"
must_be_red "$recorded" "$TEST_TMPDIR/changed.txt" "$exceptions" "a changed fact"
must_be_red "$recorded" /dev/null "$exceptions" "no facts"
(cat "$exceptions" && echo "capture.begin no reason") > "$TEST_TMPDIR/stale.txt"
must_be_red "$recorded" "$out" "$TEST_TMPDIR/stale.txt" "a stale exception"
