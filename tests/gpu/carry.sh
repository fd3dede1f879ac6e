#!/bin/bash
# Builds everything tests/gpu/run.sh needs and copies it into one folder that can travel to a GPU
# machine without Bazel. Usage: tests/gpu/carry.sh [FOLDER]   (default: .carry)
# BAZEL may name another command, with its start-up options. A target that does not build is left
# out, named, and makes this script fail; run.sh then counts what needs it as failed.
set -euo pipefail
cd "$(dirname "$0")/../.."
to=${1:-.carry}
read -ra bazel <<<"${BAZEL:-bazel}"
missing=0

build() {
    "${bazel[@]}" build --noshow_progress --ui_event_filters=-info --show_result=0 \
        --symlink_prefix=/ "$@"
}

case $to in /*) ;; *) to=$PWD/$to ;; esac
bin=$("${bazel[@]}" info bazel-bin 2>/dev/null)
if [ -e "$to" ] && [ ! -e "$to/COMMIT" ]; then
    echo "carry.sh: $to exists and was not made by this script" >&2
    exit 1
fi
rm -rf "$to"
mkdir -p "$to/lib" "$to/simcuda" "$to/null"
: >"$to/COMMIT"

# carry TARGET [NAME]: the target's file, under NAME or its own.
carry() {
    local target=$1 file
    file=$bin/$(sed 's#^//##; s#:#/#; s#^/##' <<<"$target")
    local name=${2:-$(basename "$file")}
    if build "$target" && cp -L "$file" "$to/$name"; then
        chmod u+w "$to/$name"
    else
        echo "carry.sh: $target is left out" >&2
        missing=1
    fi
}

carry //:libautograph.so
for app in stencil cg chain phases; do
    carry "//tests/apps:${app}_driver"
    carry "//tests/apps:${app}_static.bin" "${app}_static"
    carry "//tests/apps:${app}_shared.bin" "${app}_shared"
done
for bench in chain_bench mixed_bench overlap_bench streams_bench hold_cost aside_cost libstub_launch.so; do
    carry "//tools/bench:$bench"
done
carry //tools/audit:libgraph_share.so
carry //tests/gpu:gemm_loop
carry //tests/conformance:conformance
carry //tools/simcuda:libcuda.so.1 simcuda/libcuda.so.1
carry //tools/bench/null:libcuda.so.1 null/libcuda.so.1

# What simcuda answers, for comparison with what the real driver will.
if ! CONFORMANCE_OUT=$to/facts_simcuda.txt LD_LIBRARY_PATH=$to/simcuda \
    timeout 200 "$to/conformance" >/dev/null; then
    echo "carry.sh: conformance fails on the simulated driver" >&2
    missing=1
fi

# The shared cudart of the toolkit that the examples were built with.
cudart=$(find -L "$("${bazel[@]}" info output_base 2>/dev/null)/external/cuda/lib64/" -maxdepth 1 \
    -name 'libcudart.so.1[23]' | head -1)
cp -L "$cudart" "$to/lib/" || missing=1

commit=$(git rev-parse --short=12 HEAD)
git diff --quiet HEAD -- shim capture policy kernels tools tests || commit="$commit+changes"
echo "$commit" >"$to/COMMIT"
du -sh "$to"
exit $missing
