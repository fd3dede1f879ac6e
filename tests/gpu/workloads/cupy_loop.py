"""A loop of small CuPy kernels: a raw kernel and an elementwise one in turn."""
import cupy

import harness

LAUNCHES, SIZE = 20, 4096

SOURCE = r"""
extern "C" __global__ void scale_add(float *x, const float *y, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = x[i] * 0.5f + y[i] * a;
}
"""


def main():
    opts = harness.options(default_steps=200)
    raw = cupy.RawKernel(SOURCE, "scale_add")
    rng = cupy.random.RandomState(7)
    x = rng.standard_normal(SIZE, dtype=cupy.float32)
    y = rng.standard_normal(SIZE, dtype=cupy.float32)
    n = cupy.int32(SIZE)
    scales = [cupy.float32(0.125 + k * 0.03125) for k in range(8)]
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()

    def step(i):
        for k in range(LAUNCHES // 2):
            raw((SIZE // 256,), (256,), (x, y, scales[(i + k) & 7], n))
            cupy.multiply(y, scales[k & 7], out=y)
            if k & 1:
                cupy.add(y, x, out=y)

    with stream:
        samples, steps = harness.blocks(opts, step, stream.synchronize)
    digest = harness.Digest()
    digest.array(cupy.asnumpy(x), cupy.asnumpy(y))
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    harness.report("cupy_loop", samples, steps, {"arrays": digest}, name,
                   launches_per_step=LAUNCHES + LAUNCHES // 4)


if __name__ == "__main__":
    main()
