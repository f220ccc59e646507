"""The cells in JAX: each step one function under jit, its parameters and states donated."""
import contextlib
import gc

import jax
import jax.numpy as jnp
from jax import lax

import nets.in_jax as networks
import steps.in_jax as steps
from cases import Cells
from frameworks import in_jax as models
from workloads import stages_of

VERSION = models.VERSION
CELLS = Cells()


def begin(where, tf32):
    """Before cases are made: whether products and convolutions may round to TF32."""
    jax.config.update("jax_default_matmul_precision", "tensorfloat32" if tf32 else "highest")


def during(mode):
    """The settings of a mode."""
    return contextlib.nullcontext()


def forget():
    """Give the memory of cases that are gone back to the device."""
    jax.clear_caches()
    gc.collect()


def wait(handle):
    jax.block_until_ready(jnp.zeros(()))


def case_of(cell, p, model, loss, data, inputs=("x", "t"), with_statistics=False):
    """The case of model(p, ...); ``inputs`` are those of the loss, the model itself does without targets."""
    if cell.endswith("infer"):
        return models.inference(model, (p, *models.inputs_of(data, *(name for name in inputs if name != "t"))))
    case = steps.supervised(cell, p, loss, models.inputs_of(data, *inputs), with_statistics=with_statistics)
    return case._replace(checked=2)


@CELLS.of("mlp.momentum mlp.infer", "jit")
def mlp(data, cell, mode):
    def model(p, x):
        return models.apply_mlp(p, x, jax.nn.relu)
    return case_of(cell, models.weights_of(data), model, lambda p, x, t: models.cross_entropy(model(p, x), t), data)


@CELLS.of("lstm.momentum lstm.infer", "jit")
def language_model(data, cell, mode):
    return case_of(cell, models.weights_of(data), models.apply_language_model, models.language_loss, data)


@CELLS.of("resnet.momentum resnet.infer", "jit")
def resnet(data, cell, mode):
    stages, data = stages_of(data), models.channels_last(data)

    def loss(p, x, t):
        statistics = {}
        value = models.cross_entropy(models.apply_resnet(p, x, stages, statistics), t)
        return value, {name: lax.stop_gradient(found) for name, found in statistics.items()}
    return case_of(cell, models.weights_of(data), lambda p, x: models.apply_resnet(p, x, stages), loss, data, with_statistics=True)


@CELLS.of("gpt.adam gpt.infer", "jit")
def gpt(data, cell, mode):
    p, model = networks.gpt_of(data)
    return case_of(cell, p, model, lambda p, x, t: models.cross_entropy(model(p, x), t), data)


def block(p, name, x):
    return jax.nn.gelu(models.layer_norm(p, name + ".ln", models.linear(p, name + ".l", x)), approximate=False)


def encoded(p, x):
    h = block(p, "e2", block(p, "e1", x))
    return models.linear(p, "mean", h), models.linear(p, "ln_var", h)


def decoded(p, z):
    return models.linear(p, "out", block(p, "d2", block(p, "d1", z)))


def apply_vae(p, x, noise):
    mean, ln_var = encoded(p, x)
    return decoded(p, mean + jnp.exp(0.5 * ln_var) * noise)


def vae_loss(p, x, noise):
    mean, ln_var = encoded(p, x)
    y = decoded(p, mean + jnp.exp(0.5 * ln_var) * noise)
    return (jnp.sum(jax.nn.softplus(y) - x * y) + 0.5 * jnp.sum(mean * mean + jnp.exp(ln_var) - ln_var - 1)) / len(x)


@CELLS.of("vae.adam vae.infer", "jit")
def vae(data, cell, mode):
    return case_of(cell, models.weights_of(data), apply_vae, vae_loss, data, ("x", "noise"))
