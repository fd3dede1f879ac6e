"""One row per kernel file: its module image (nvcc), the image as a C array, its host build."""

load("@rules_cc//cc:defs.bzl", "cc_library")

# What programs are built for: any GPU from sm_80 on.
PROGRAMS = ["arch=compute_80,code=compute_80", "arch=compute_90,code=sm_90"]

# What the shim brings itself must not wait for a compiler in the middle of a program.
SHIM = ["arch=compute_%s,code=sm_%s" % (n, n) for n in ["75", "80", "86", "89", "90", "100", "103", "120"]] + [
    "arch=compute_75,code=compute_75",
]

def kernel_file(name, gencode = PROGRAMS):
    """Makes NAME.fatbin, NAME_image (ag_image_NAME, ag_image_NAME_size) and NAME_host.

    Args:
      name: of the .cu file, without the extension.
      gencode: what nvcc makes it for.
    """
    source = name + ".cu"

    # Uncompressed, so that simcuda can read the names; no contraction, so that both builds round alike.
    native.genrule(
        name = name + "_fatbin",
        srcs = [source, "device.h"],
        outs = [name + ".fatbin"],
        cmd = "$(location @cuda//:nvcc) -fatbin --no-compress --fmad=false -I. " +
              "-include kernels/device.h " +
              " ".join(["-gencode " + g for g in gencode]) + " " +
              "$(location %s) -o $@" % source,
        tools = ["@cuda//:nvcc"],
    )

    native.genrule(
        name = name + "_image_source",
        srcs = [name + ".fatbin"],
        outs = [name + "_image.c"],
        cmd = "(echo '#include \"kernels/images.h\"'; " +
              "echo 'const unsigned char ag_image_%s[] __attribute__((aligned(64))) = {'; " % name +
              "od -An -v -tx1 $< | sed 's/ \\([0-9a-f][0-9a-f]\\)/0x\\1,/g'; echo '};'; " +
              "echo 'const unsigned long ag_image_%s_size = sizeof(ag_image_%s);') > $@" %
              (name, name),
    )

    native.genrule(
        name = name + "_host_source",
        srcs = [source, "register.awk"],
        outs = [name + "_host.cc"],
        cmd = "awk -v file=kernels/%s -f $(location register.awk) $(location %s) > $@" %
              (source, source),
    )

    cc_library(
        name = name + "_host",
        srcs = [name + "_host.cc"],
        copts = [
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-parameter",
            "-fno-exceptions",
            "-fno-rtti",
            "-fvisibility=hidden",
            "-ffp-contract=off",
        ],
        alwayslink = 1,
        linkstatic = 1,
        textual_hdrs = [source],
        deps = [":host_header"],
    )
