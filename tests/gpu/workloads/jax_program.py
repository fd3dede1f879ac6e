"""A JAX program: a jitted function in a loop, and a small network trained with plain SGD."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# Autotuning times kernels and may choose otherwise in the next run; atomics may add otherwise.
os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") +
                           " --xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0").strip()

import jax
import jax.numpy as jnp
import numpy

import harness


def loss_of(weights, x, y):
    h = x
    for w, b in weights[:-1]:
        h = jnp.tanh(h @ w + b)
    w, b = weights[-1]
    return jnp.mean((h @ w + b - y) ** 2)


@jax.jit
def train(weights, x, y):
    loss, grads = jax.value_and_grad(loss_of)(weights, x, y)
    return jax.tree_util.tree_map(lambda w, g: w - 0.01 * g, weights, grads), loss


@jax.jit
def relax(v):
    return jnp.sin(v) * 0.5 + jnp.roll(v, 1) * 0.25 + jnp.cumsum(v) * 1e-4


def main():
    opts = harness.options(default_steps=100)
    rng = numpy.random.default_rng(3)
    sizes = [64, 128, 128, 16]
    weights = [(jnp.asarray(rng.standard_normal((a, b)) * 0.1, jnp.float32), jnp.zeros((b,)))
               for a, b in zip(sizes, sizes[1:])]
    x = jnp.asarray(rng.standard_normal((256, 64)), jnp.float32)
    y = jnp.asarray(rng.standard_normal((256, 16)), jnp.float32)
    state = {"weights": weights, "v": jnp.linspace(0.0, 1.0, 4096), "losses": []}

    def step(_):
        state["weights"], loss = train(state["weights"], x, y)
        state["v"] = relax(state["v"])
        state["losses"].append(loss)

    def synchronize():
        jax.block_until_ready((state["weights"], state["v"]))

    digest = {"losses": harness.Digest(), "weights": harness.Digest(), "array": harness.Digest()}

    def after_block():
        digest["losses"].array(*(numpy.asarray(v) for v in state["losses"]))
        state["losses"].clear()

    samples, steps = harness.blocks(opts, step, synchronize, after_block)
    digest["weights"].array(*(numpy.asarray(v) for v in jax.tree_util.tree_leaves(
        state["weights"])))
    digest["array"].array(numpy.asarray(state["v"]))
    harness.report("jax_program", samples, steps, digest, jax.devices()[0].device_kind)


if __name__ == "__main__":
    main()
