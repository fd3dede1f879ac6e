#!/bin/bash
# Runs the conformance program on simcuda: on_simcuda.sh PROGRAM LIBCUDA
set -u
program=$1 library=$2
out=${TEST_TMPDIR:-/tmp}/facts.txt
CONFORMANCE_OUT=$out LD_LIBRARY_PATH=$(dirname "$(realpath "$library")") timeout 200 "$program"
status=$?
facts=$(wc -l < "$out")
echo "$facts facts"
[ $status -eq 0 ] && [ "$facts" -ge 200 ]
