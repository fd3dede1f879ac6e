"""A loop of small Triton kernels, every second argument changing.

Triton's own Python costs more than the driver's launch, so the loop launches the compiled kernel
(what kernel[grid](...) returns); --jit goes through kernel[grid](...) each time.
"""
import sys

import torch
import triton
import triton.language as tl

import harness

LAUNCHES, SIZE, BLOCK = 40, 4096, 256


@triton.jit
def scale_add(x, y, a, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    v = tl.load(x + i, mask=ok) * 0.5 + tl.load(y + i, mask=ok) * a
    tl.store(x + i, v, mask=ok)


def main():
    jit = "--jit" in sys.argv
    if jit:
        sys.argv.remove("--jit")
    opts = harness.options(default_steps=100)
    torch.manual_seed(5)
    x = torch.randn(SIZE, device="cuda")
    y = torch.randn(SIZE, device="cuda")
    grid = (triton.cdiv(SIZE, BLOCK), 1, 1)
    arrays = [(x, y), (y, x)]
    compiled = scale_add[grid](x, y, 0.25, SIZE, BLOCK=BLOCK)

    def step(i):
        for k in range(LAUNCHES):
            a, b = arrays[k & 1]
            scale = 0.125 + ((i + k) & 7) * 0.03125
            if jit:
                scale_add[grid](a, b, scale, SIZE, BLOCK=BLOCK)
            else:
                compiled[grid](a, b, scale, SIZE, BLOCK)

    samples, steps = harness.blocks(opts, step, torch.cuda.synchronize)
    digest = harness.Digest()
    digest.torch(x, y)
    harness.report("triton_loop_jit" if jit else "triton_loop", samples, steps,
                   {"arrays": digest}, torch.cuda.get_device_name(), launches_per_step=LAUNCHES)


if __name__ == "__main__":
    main()
