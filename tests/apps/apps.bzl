"""Builds one example three ways: driver API, runtime API with static and with shared cudart."""

# Without fused multiply-add a device and the host build of a kernel give the same bits.
_NVCC = ("-O2 --fmad=false -I. -DAPP_RUNTIME " +
         "-gencode arch=compute_80,code=compute_80 -gencode arch=compute_90,code=sm_90 " +
         "-Xcompiler -Wall,-Wextra,-Werror ")

_COPTS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror"]

def example(name, kernels, extra = []):
    """Makes NAME_driver, for simcuda and GPUs alike, and NAME_static, NAME_shared, for GPUs.

    Args:
      name: of the .c file, without the extension.
      kernels: of the kernel file, without folder and extension.
      extra: more sources of the example.
    """
    common = ["report.c", "report.h", "device_layer.h"] + extra
    native.cc_binary(
        name = name + "_driver",
        srcs = [name + ".c", "device_driver.c"] + common,
        # The stub has the driver's soname and lies in no folder of ours: LD_LIBRARY_PATH or the
        # system decides which libcuda.so.1 runs.
        additional_linker_inputs = ["@cuda//:stub"],
        copts = _COPTS,
        linkopts = ["$(location @cuda//:stub)"],
        visibility = ["//visibility:public"],
        deps = ["//kernels:images", "@cuda//:headers"],
    )
    files = [name + ".c", "device_runtime.c"] + common
    cu = "//kernels:%s.cu" % kernels
    sources = [f for f in files if f.endswith(".c")] + [cu]
    for cudart in ["static", "shared"]:
        native.genrule(
            name = name + "_" + cudart,
            srcs = files + [cu, "//kernels:device.h"],
            outs = [name + "_" + cudart + ".bin"],
            cmd = "$(location @cuda//:nvcc) " + _NVCC + "-cudart " + cudart + " " +
                  " ".join(["$(location %s)" % s for s in sources]) + " -o $@",
            executable = 1,
            tools = ["@cuda//:nvcc"],
            visibility = ["//visibility:public"],
        )
