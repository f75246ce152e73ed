"""A perceptron in JAX, whose loss is read in each step.

usage: jax_jit.py STEPS
"""

import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax  # noqa: E402  # reads the environment
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

SIZES = [(512, 2048), (2048, 2048), (2048, 10)]
BATCH = 256


def loss(weights, inputs, labels):
    for weight in weights[:-1]:
        inputs = jax.nn.relu(inputs @ weight)
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(inputs @ weights[-1]) * labels, -1))


@jax.jit
def update(weights, inputs, labels):
    value, gradients = jax.value_and_grad(loss)(weights, inputs, labels)
    return value, [weight - 0.01 * gradient for weight, gradient in zip(weights, gradients)]


def main(steps):
    keys = jax.random.split(jax.random.PRNGKey(0), len(SIZES))
    weights = [0.02 * jax.random.normal(key, size) for key, size in zip(keys, SIZES)]
    random = np.random.default_rng(0)
    for _ in range(int(steps)):
        inputs = random.standard_normal((BATCH, SIZES[0][0]), dtype=np.float32)
        labels = np.eye(SIZES[-1][1], dtype=np.float32)[random.integers(0, SIZES[-1][1], BATCH)]
        value, weights = update(weights, inputs, labels)
        float(value)


if __name__ == "__main__":
    main(*sys.argv[1:])
