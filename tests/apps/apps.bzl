"""Builds one example three ways: driver API, runtime API with static and with shared cudart."""

_ARCH = "-gencode arch=compute_80,code=compute_80 -gencode arch=compute_90,code=sm_90"

# Without fused multiply-add a device and the host build of a kernel give the same bits.
_NVCC = "-O2 -fmad=false " + _ARCH

def kernel_image(name, cu):
    """A library with the fatbin of cu as ag_image_NAME; uncompressed, so that names are readable."""
    native.genrule(
        name = name + "_fatbin",
        srcs = [cu],
        outs = [name + ".fatbin"],
        cmd = "$(location @cuda//:nvcc) -fatbin --no-compress %s $(location %s) -o $@" % (_NVCC, cu),
        tools = ["@cuda//:nvcc"],
    )
    native.genrule(
        name = name + "_assembly",
        srcs = [name + ".fatbin"],
        outs = [name + "_image.S"],
        cmd = """cat > $@ <<END
    .section .rodata
    .balign 16
    .globl ag_image_{n}
ag_image_{n}:
    .incbin "$(location {n}.fatbin)"
    .section .note.GNU-stack,"",%progbits
END""".format(n = name),
    )
    native.cc_library(
        name = name + "_image",
        srcs = [name + "_image.S"],
        textual_hdrs = [name + ".fatbin"],
        linkstatic = 1,
        alwayslink = 1,
        visibility = ["//tools/bench:__pkg__"],
    )

_COMMON = ["report.c", "report.h", "device.h"]
_COPTS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror"]

def example(name, image, cu, extra = []):
    """NAME_driver runs on simcuda and on a GPU alike; NAME_static and NAME_shared need a GPU."""
    native.cc_binary(
        name = name + "_driver",
        srcs = [name + ".c", "device_driver.c"] + _COMMON + extra,
        copts = _COPTS,
        # The stub has the driver's soname and no directory of ours: LD_LIBRARY_PATH or the
        # system decides which libcuda.so.1 runs.
        linkopts = ["$(location @cuda//:stub)"],
        additional_linker_inputs = ["@cuda//:stub"],
        deps = [":" + image + "_image", "@cuda//:headers"],
        visibility = ["//visibility:public"],
    )
    sources = [name + ".c", "device_runtime.c", "report.c"] + [f for f in extra if f.endswith(".c")]
    headers = ["device.h"] + [f for f in extra + _COMMON if f.endswith(".h")]
    for kind in ["static", "shared"]:
        native.genrule(
            name = name + "_" + kind,
            srcs = sources + [cu] + headers,
            outs = [name + "_" + kind + ".bin"],
            cmd = "$(location @cuda//:nvcc) -cudart " + kind + " " + _NVCC + " -DAPP_RUNTIME -I. " +
                  "-Xcompiler -Wall,-Wextra,-Werror " +
                  " ".join(["$(location %s)" % s for s in sources + [cu]]) + " -o $@",
            executable = 1,
            tools = ["@cuda//:nvcc"],
            visibility = ["//visibility:public"],
        )
