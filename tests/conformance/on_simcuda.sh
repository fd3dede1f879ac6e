#!/bin/bash
# Runs the conformance program on simcuda: on_simcuda.sh PROGRAM LIBCUDA
set -u
# Each case is a process of its own and would write this file anew: the last one would speak for all.
unset XML_OUTPUT_FILE
program=$1 library=$2
out=${TEST_TMPDIR:-/tmp}/facts.txt
CONFORMANCE_OUT=$out LD_LIBRARY_PATH=$(dirname "$(realpath "$library")") timeout 200 "$program"
status=$?
facts=$(wc -l < "$out")
echo "$facts facts"
[ $status -eq 0 ] && [ "$facts" -ge 200 ]
