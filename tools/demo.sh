#!/bin/bash
# Builds autograph and shows it on one unmodified program (tests/apps/chain.c), run without and with
# the shim: the results, how many kernel launches were replaced by graphs as the driver saw it, and
# both times. Uses the GPU if there is one, else the simulated driver, whose times are simulated.
# Usage: demo.sh [--gpu | --simulated]
# Fails when the results differ, when nothing was replaced, or when the count cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."
want=${1:-}
program=(tests/apps/chain_driver -k 120 -i 300)

fail() {
    echo "demo.sh: $1" >&2
    exit 1
}

has_gpu() {
    /sbin/ldconfig -p | grep -q 'libcuda\.so\.1 ' && compgen -G '/dev/nvidia[0-9]*' >/dev/null
}

case $want in
'') has_gpu && where=gpu || where=simulated ;;
--gpu) has_gpu && where=gpu || fail "no libcuda.so.1 of a driver, or no device" ;;
--simulated) where=simulated ;;
*) fail "usage: demo.sh [--gpu | --simulated]" ;;
esac

./tools/install.sh
targets=(//:libautograph.so //tests/apps:chain_driver)
[ $where = gpu ] && targets+=(//tools/audit:libgraph_share.so @cuda//:cupti) ||
    targets+=(//tools/simcuda:libcuda.so.1)
echo "building ..."
bazel build --noshow_progress --ui_event_filters=-info --show_result=0 "${targets[@]}"
bin=$(bazel info bazel-bin 2>/dev/null)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for name in $(compgen -e | grep -E '^(AUTOGRAPH|SIMCUDA)' || true); do unset "$name"; done

# run NAME VARIABLE=VALUE...: the program's result goes to NAME.out, the driver's account to NAME.json.
run() {
    local name=$1
    shift
    if [ $where = simulated ]; then
        # Wall time says nothing there, so the shim is not left to measure it.
        set -- "LD_LIBRARY_PATH=$bin/tools/simcuda" "SIMCUDA_STATS=$out/$name.json" \
            AUTOGRAPH_PACE=prompt "$@"
    fi
    env "$@" "$bin/${program[0]}" "${program[@]:1}" >"$out/$name.out" 2>"$out/$name.err" || {
        cat "$out/$name.out" "$out/$name.err" >&2
        fail "the program failed ($name)"
    }
}

# number NAME KEY: from the driver's account of a run.
number() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' \
        "$out/$1.json" "$2" || fail "no $2 in the driver's account of the run"
}

# CUPTI sees each kernel that the device executes, and whether a graph launched it. It slows the
# program down, so the runs that are timed go without it.
audit() {
    local cuda cupti
    cuda=$(bazel info output_base 2>/dev/null)/external/cuda
    cupti=$(dirname "$(compgen -G "$cuda/lib64/libcupti.so" ||
        compgen -G "$cuda/extras/CUPTI/lib64/libcupti.so")") || fail "no libcupti.so in the toolkit"
    run "$1" "AG_AUDIT=$out/$1.json" "CUDA_INJECTION64_PATH=$bin/tools/audit/libgraph_share.so" \
        "LD_LIBRARY_PATH=$cupti${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "${@:2}"
}

shim=LD_PRELOAD=$bin/libautograph.so
run without
run with "$shim"
echo "program        ${program[*]}"
echo "without shim   $(cat "$out/without.out")"
echo "with shim      $(cat "$out/with.out")"
cmp -s "$out/without.out" "$out/with.out" || fail "the results differ"
echo "               identical"

if [ $where = gpu ]; then
    audit audited "$shim"
    cmp -s "$out/without.out" "$out/audited.out" || fail "the results differ under the profiler"
    kernels=$(number audited kernels)
    replaced=$(number audited in_graphs)
    [ "$(number audited dropped_records)" = 0 ] || fail "the profiler lost records"
    counted="counted by CUPTI in a run of its own"
    times="$(sed 's/^[^:]*: //' "$out/without.err") without, $(sed 's/^[^:]*: //' "$out/with.err") with"
else
    replaced=$(number with kernels_in_graphs)
    kernels=$((replaced + $(number with kernels_eager)))
    [ "$(number without kernels_in_graphs)" = 0 ] || fail "graphs were launched without the shim"
    counted="counted by the simulated driver"
    times="simulated: $(number without elapsed_us) us without, $(number with elapsed_us) us with"
fi
echo "replaced       $replaced of $kernels kernel launches ran inside graphs, $counted"
echo "time           $times"
[ "$replaced" -gt 0 ] || fail "nothing was replaced: the shim did nothing"
