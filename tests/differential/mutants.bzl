"""The product with one planted fault, built beside the sound one.

The whole product is built again with -DAG_MUTANT_<NAME> by a configuration transition, so the targets under test need
to know nothing about it: `#ifdef AG_MUTANT_<NAME>` in a source file of theirs is all.
"""

def _with_define(settings, attr):
    return {"//command_line_option:copt": settings["//command_line_option:copt"] + ["-DAG_MUTANT_" + attr.mutant]}

_mutate = transition(
    implementation = _with_define,
    inputs = ["//command_line_option:copt"],
    outputs = ["//command_line_option:copt"],
)

def _impl(ctx):
    library = None
    for f in ctx.attr.library[0].files.to_list():
        if f.basename.endswith(".so"):
            library = f
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = out, target_file = library)
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

mutant_library = rule(
    implementation = _impl,
    attrs = {
        "library": attr.label(mandatory = True, cfg = _mutate),
        "mutant": attr.string(mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)

# What each mutant does wrong is written at its #ifdef.
MUTANTS = [
    "LOST_OP",
    "DOUBLED_OP",
    "STALE_ARGUMENT",
    "SWAPPED_OPS",
    "NO_DRAIN_AT_SYNC",
    "NO_LIVENESS",
    "LAYOUT_KEPT",
    "ATTRIBUTE_IGNORED",
    "IGNORED_STATUS",
    "GENERATION_IGNORED",
    "FILL_UNPROVEN",
    "FILL_LOADED_AT_ONCE",
    "RECORD_DROPPED",
    "RECORD_LATE",
    "RECORD_ELIDED",
    "RECORD_STALE",
    "RECORD_GENERATION",
    "WAIT_DROPPED",
    "WAIT_PASSED",
    "LEGACY_JOINED",
]

# One promise broken each; tests/promises.py says which test has to notice.
PROMISE_MUTANTS = [
    "STREAM_KEPT",
    "STICKY_MISSED",
    "NO_DRAIN_BUT_AT_SYNC",
    "UNKNOWN_PASSES",
    "CAPTURE_IGNORED",
    "NO_STEP_ASIDE",
    "UNBOUNDED",
    "FAILURE_TOLD",
    "PRINTS",
    "EARLY_START",
    "NAMES_ALWAYS",
    "FORK_LOCKS",
    "RECORD_EARLY",
]

def mutant_libraries(library):
    for name in MUTANTS + PROMISE_MUTANTS:
        mutant_library(
            name = "mutant_" + name + ".so",
            library = library,
            mutant = name,
            tags = ["manual"],
            visibility = ["//tests:__subpackages__"],
        )
