#!/usr/bin/env python3
"""Fails when the code's structure breaks docs/ARCHITECTURE.md.

Dependencies, asked of Bazel: policy knows nothing of CUDA, the shim or capture; capture uses the
shim only through its leaves; the simulated driver does not know the shim; the product contains
nothing of tools, tests or kernels, but for its own kernel. Sizes, asked of ctags: functions up to 80 lines, files up to
600. File names are unique. Usage: check_layers.py [--sizes-only] [FOLDER]
"""
import collections
import json
import os
import pathlib
import subprocess
import sys

CODE = (".c", ".h", ".cc", ".cu", ".cuh", ".S")
MAX_FUNCTION, MAX_FILE = 80, 600
LEAVES = {"//shim:driver"}
# Names that every folder may have.
COMMON_NAMES = {"BUILD", "README.md", "WORKSPACE", "defs.bzl"}

problems = []


def bad(text):
    problems.append(text)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def bazel(*command):
    return run("bazel", *command)


def query(expression):
    out = bazel("query", "--noimplicit_deps", "--nohost_deps", "--noshow_progress",
                "--ui_event_filters=-info", expression)
    return set(out.split())


def none_of(why, expression):
    for label in sorted(query(expression)):
        bad(f"{why}: {label}")


def check_policy():
    none_of("policy depends on CUDA, the shim or capture",
            'let p = deps(//policy/...) in filter("^@cuda//", $p) union '
            "($p intersect (//shim/... union //capture/...))")
    # Not only the build rules: the code itself must not call a driver.
    bazel("build", "--noshow_progress", "--ui_event_filters=-info", "--show_result=0",
          "//policy/...")
    folder = pathlib.Path(bazel("info", "bazel-bin").strip(), "policy")
    archives = sorted(folder.glob("lib*.a")) + sorted(folder.glob("lib*.lo"))
    if not archives:
        bad("policy: no built library to look into")
    for archive in archives:
        for line in run("nm", "--undefined-only", "--format=posix", str(archive)).splitlines():
            name = line.split(" ")[0]
            if name.startswith("cu") and name[2:3].isupper():
                bad(f"policy needs a driver symbol: {name} in {archive.name}")


def allowed_for_capture(label):
    return label in LEAVES or label.startswith("//shim/observe:")


def check_capture():
    # What a rule of capture names itself; what a leaf needs in turn is the leaf's affair.
    for attribute in ("deps", "srcs", "hdrs", "textual_hdrs", "data"):
        for label in query(f"labels({attribute}, //capture/...) intersect //shim/...:*"):
            if not allowed_for_capture(label):
                bad(f"capture uses a part of the shim that is no leaf: {label} ({attribute})")
    none_of("a leaf of the shim depends on capture or policy",
            "deps(//shim:driver) intersect (//capture/... union //policy/...)")
    none_of("capture or policy depends on the whole shim",
            "deps(//capture/... union //policy/...) intersect //shim:shim")


def check_edges():
    none_of("the simulated driver knows the shim",
            "deps(//tools/simcuda/...) intersect "
            '(kind("cc_.* rule", //shim/...) union //capture/... union //policy/...)')
    none_of("the product contains tools, tests or kernels",
            "deps(//:libautograph.so) intersect "
            "(//tools/... union //tests/... union (//kernels/... except deps(//kernels:fill_image)))")


def repository_files():
    out = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return [f for f in sorted(set(out.split("\0"))) if f and os.path.isfile(f)]


def check_names(files):
    places = collections.defaultdict(list)
    for f in files:
        name = os.path.basename(f)
        if name not in COMMON_NAMES and not f.startswith("tools/stubs/"):
            places[name].append(f)
    for name, where in sorted(places.items()):
        if len(where) > 1:
            bad(f"file name used more than once: {' '.join(where)}")


def check_sizes(files):
    code = [f for f in files if f.endswith(CODE)]
    for f in code:
        with open(f, encoding="utf-8") as text:
            lines = sum(1 for _ in text)
        if lines > MAX_FILE:
            bad(f"{f}: {lines} lines, the limit is {MAX_FILE}")
    if not code:
        return
    tags = run("ctags", "-f", "-", "--output-format=json", "--languages=C,C++",
               "--langmap=C++:+.cu.cuh", "--kinds-C=f", "--kinds-C++=f", "--fields=+ne", *code)
    for line in tags.splitlines():
        tag = json.loads(line)
        if "end" not in tag:
            continue
        length = tag["end"] - tag["line"] + 1
        if length > MAX_FUNCTION:
            bad(f"{tag['path']}:{tag['line']}: {tag['name']} has {length} lines, "
                f"the limit is {MAX_FUNCTION}")


def main(arguments):
    sizes_only = "--sizes-only" in arguments
    folders = [a for a in arguments if a != "--sizes-only"]
    os.chdir(folders[0] if folders else pathlib.Path(__file__).resolve().parent.parent)
    files = repository_files()
    check_names(files)
    check_sizes(files)
    if not sizes_only:
        try:
            check_policy()
            check_capture()
            check_edges()
        except subprocess.CalledProcessError as e:
            bad(f"{' '.join(e.cmd)}\n{e.stderr.strip()}")
    for problem in problems:
        print(f"check_layers.py: {problem}")
    return 1 if problems else 0


sys.exit(main(sys.argv[1:]))
