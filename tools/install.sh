#!/bin/bash
# Installs what building and testing need and this machine lacks: Debian packages, and a CUDA
# toolkit from the nvidia-cuda-* wheels where none is found. Needs root or sudo only when a package
# is missing. Usage: install.sh [tests]. Silent when there is nothing to do; on failure one line says what failed.
set -euo pipefail

packages=(bazel-bootstrap binutils clang clang-format g++ git googletest graphviz python3
    python3-venv universal-ctags uthash-dev)
# With the argument 'tests': what tests/aarch64 needs, which is skipped without.
cross=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
# One CUDA release, its parts under their own version numbers.
wheels=(nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88
    nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
cache=$HOME/.cache/autograph
log=$(mktemp)
trap 'rm -f "$log"' EXIT

fail() {
    tail -n 20 "$log" >&2
    echo "install.sh: $1" >&2
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "packages are missing and this is neither root nor has sudo: ${missing[*]}"
    fi
}

# Those of the packages that are not installed, in `missing`.
find_missing() {
    local have
    have=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
    missing=()
    for p in "$@"; do
        grep -qx "$p installed" <<<"$have" || missing+=("$p")
    done
}

install_cross() {
    find_missing "${cross[@]}"
    [ ${#missing[@]} = 0 ] && return
    echo "installing: ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    { [ "$(id -u)" = 0 ] || command -v sudo; } >/dev/null && as_root apt-get update -q >"$log" 2>&1 &&
        as_root apt-get install -q -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
        echo "install.sh: tests/aarch64 will be skipped, it needs ${missing[*]}" >&2
}

install_packages() {
    command -v dpkg-query >/dev/null || fail "this is not Debian; needed by hand: ${packages[*]}"
    find_missing "${packages[@]}"
    [ ${#missing[@]} = 0 ] && return
    echo "installing: ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    as_root apt-get update -q >"$log" 2>&1 || fail "apt-get update failed"
    as_root apt-get install -q -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
        fail "apt-get install failed: ${missing[*]}"
}

# The same parts that tools/workspace/cuda.bzl asks for.
is_toolkit() {
    [ -x "$1/bin/nvcc" ] && [ -x "$1/nvvm/bin/cicc" ] && [ -f "$1/include/cuda.h" ] &&
        [ -f "$1/include/cuda_runtime.h" ] && [ -f "$1/include/crt/host_config.h" ]
}

install_cuda() {
    if [ -n "${CUDA_HOME:-}" ]; then
        is_toolkit "$CUDA_HOME" || fail "CUDA_HOME=$CUDA_HOME is not a CUDA toolkit"
        return
    fi
    is_toolkit /usr/local/cuda && return
    is_toolkit "$cache/cuda" && return
    echo "installing a CUDA toolkit (${#wheels[@]} wheels, 320 MB) under $cache"
    mkdir -p "$cache"
    rm -rf "$cache/venv" "$cache/cuda"
    /usr/bin/python3 -m venv "$cache/venv" >"$log" 2>&1 || fail "python3 -m venv failed"
    "$cache/venv/bin/pip" install -q --no-deps "${wheels[@]}" >"$log" 2>&1 ||
        fail "pip install failed: ${wheels[*]}"
    local found
    found=$(echo "$cache"/venv/lib/python3*/site-packages/nvidia/cu13)
    is_toolkit "$found" || fail "the wheels lack a part of the toolkit: $found"
    # nvcc looks for its libraries under lib64 and by their plain names; the wheels lack both.
    ln -sfn lib "$found/lib64"
    for library in cudart cupti; do
        ln -sfn "lib$library.so.13" "$found/lib/lib$library.so"
    done
    ln -sfn "$found" "$cache/cuda"
}

install_packages
[ "${1:-}" != tests ] || install_cross
install_cuda
