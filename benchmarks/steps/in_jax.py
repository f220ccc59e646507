"""Whole steps of training in JAX: one function under jit, its parameters and states donated."""
import functools

import jax
import jax.numpy as jnp

from cases import Case, Cells
from frameworks import in_jax as models
from steps import workloads

VERSION = models.VERSION
CELLS = Cells()


def begin(mode):
    pass


def sgd(p, state, g, rate):
    return jax.tree.map(lambda a, g: a - rate * g, p, g), state


def momentum(p, v, g, rate):
    v = jax.tree.map(lambda v, g: workloads.MOMENTUM * v - rate * g, v, g)
    return jax.tree.map(jnp.add, p, v), v


def adam(p, state, g, rate, betas=workloads.BETAS, decay=0.0):
    """With the bias correction in the rate, as in Chainer."""
    m, v, t = state
    b1, b2 = betas
    t = t + 1
    if decay:
        g = jax.tree.map(lambda g, a: g + decay * a, g, p)
    rate = rate * jnp.sqrt(1 - b2 ** t) / (1 - b1 ** t)
    m = jax.tree.map(lambda m, g: m + (1 - b1) * (g - m), m, g)
    v = jax.tree.map(lambda v, g: v + (1 - b2) * (g * g - v), v, g)
    p = jax.tree.map(lambda a, m, v: a - rate * m / (jnp.sqrt(v) + workloads.EPSILON), p, m, v)
    return p, (m, v, t)


RULES = {"sgd": sgd, "momentum": momentum, "adam": adam}


def start(rule, p):
    """The state of an optimizer before its first step."""
    zeros = lambda: jax.tree.map(jnp.zeros_like, p)
    return {"sgd": lambda: (), "momentum": zeros, "adam": lambda: (zeros(), zeros(), jnp.float32(0))}[rule]()


def clipped(g, threshold):
    norm = jnp.sqrt(sum(jnp.sum(a * a) for a in jax.tree.leaves(g)))
    return jax.tree.map(lambda a: a * jnp.minimum(threshold / norm, 1.0), g)


def supervised(cell, p, loss, arguments, change=lambda g: g, with_statistics=False):
    """The step of loss(p, *arguments); ``change`` is made to the gradients before the update.

    with_statistics: the loss gives new running statistics, too, which are among the parameters.
    """
    name = cell.split(".")[1]
    if not with_statistics:
        loss = models.plain(loss)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def update(p, state, *arguments):
        (value, statistics), g = jax.value_and_grad(loss, has_aux=True)(p, *arguments)
        p, state = RULES[name](p, state, change(g), workloads.RATES[name])
        return {**p, **statistics}, state, value
    kept = [p, start(name, p)]

    def step():
        kept[0], kept[1], value = update(*kept, *arguments)
        return value

    def wait(value):
        jax.block_until_ready((kept, value))
    def check(value):
        return [float(value), models.norm(a for name, a in kept[0].items() if not name.endswith((".mean", ".var")))]
    return Case(step, check, wait, checked=4)


@CELLS.of("W2.sgd W2.momentum W2.adam", "jit")
def mlp(data, cell, mode):
    return supervised(cell, models.weights_of(data), lambda p, x, t: models.cross_entropy(models.apply_mlp(p, x, jnp.tanh), t),
                      models.inputs_of(data, "x", "t"))


@CELLS.of("W4.adam", "jit")
def language_model(data, cell, mode):
    return supervised(cell, models.weights_of(data), models.language_loss, models.inputs_of(data, "x", "t"))


@CELLS.of("W10.adam MAML3.adam", "jit", "jit_vmap")
def maml(data, cell, mode):
    loss = models.maml_loss_of(mode, workloads.inner_steps(cell))
    return supervised(cell, models.weights_of(data), loss, models.inputs_of(data, "xs", "ys", "xq", "yq"))


@CELLS.of("W11.adam", "jit")
def transformer(data, cell, mode):
    return supervised(cell, models.weights_of(data), models.squared_error, models.inputs_of(data, "x", "t"))


@CELLS.of("P300.adam", "jit", "jit_scan")
def small_parameters(data, cell, mode):
    """``jit_scan``: the parameters stacked by hand, and the layers a loop."""
    p = models.weights_of(data)
    count = len(p) // 2
    if mode == "jit_scan":
        p = {kind: jnp.stack([p[f"l{i}.{kind}"] for i in range(count)]) for kind in "Wb"}

    def loss(p, h, t):
        if mode == "jit_scan":
            h, _ = jax.lax.scan(lambda h, layer: (h + jnp.tanh(h @ layer["W"] + layer["b"]), None), h, p)
        else:
            for i in range(count):
                h = h + jnp.tanh(models.linear(p, f"l{i}", h))
        return jnp.mean((h - t) ** 2)
    return supervised(cell, p, loss, models.inputs_of(data, "x", "t"), lambda g: clipped(g, workloads.THRESHOLD))


# ---- DCGAN: both losses from the same fake images, channels last

def normalised(p, name, x, statistics):
    """Batch normalisation over all axes but the last; ``statistics`` takes the running ones."""
    axes = tuple(range(x.ndim - 1))
    mean = x.mean(axes)
    variance = jnp.mean((x - mean) ** 2, axes)
    n = x.size // x.shape[-1]
    for kind, value in (("mean", mean), ("var", variance * (n / max(n - 1.0, 1.0)))):
        key = f"{name}.{kind}"
        statistics[key] = 0.9 * statistics[key] + 0.1 * jax.lax.stop_gradient(value)
    return (x - mean) * (jax.lax.rsqrt(variance + 2e-5) * p.get(name + ".gamma", 1.0)) + p[name + ".beta"]


def generated(p, z, statistics, bottom, ch):
    h = z.reshape(len(z), -1) @ p["l0.W"].T + p["l0.b"]
    h = jax.nn.relu(normalised(p, "bn0", h, statistics)).reshape(len(z), ch, bottom, bottom).transpose(0, 2, 3, 1)
    for i in (1, 2, 3, 4):
        stride = 2 if i < 4 else 1
        h = jax.lax.conv_transpose(h, p[f"dc{i}.W"], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                   transpose_kernel=True) + p[f"dc{i}.b"]
        if i < 4:
            h = jax.nn.relu(normalised(p, f"bn{i}", h, statistics))
    return jax.nn.sigmoid(h)


def judged(p, x, statistics, layers):
    h = x
    for name, _, _, size in layers:
        stride = 2 if size == 4 else 1
        h = jax.lax.conv_general_dilated(h, p[name + ".W"], (stride, stride), [(1, 1)] * 2,
                                         dimension_numbers=("NHWC", "HWIO", "NHWC")) + p[name + ".b"]
        h = jax.nn.leaky_relu(h if name == "c0_0" else normalised(p, "bn" + name[1:], h, statistics), 0.2)
    return h.transpose(0, 3, 1, 2).reshape(len(h), -1) @ p["l4.W"].T + p["l4.b"]


@CELLS.of("DCGAN.adam", "jit")
def gan(data, cell, mode):
    width, bottom = data["dis.bn3_0.beta"].shape[0], data["x"].shape[2] // 8
    layers = workloads.critic_layers(width)
    gen, dis = [{name[4:]: jnp.asarray(a.transpose(2, 3, 1, 0) if a.ndim == 4 else a) for name, a in data.items()
                 if name.startswith(prefix)} for prefix in ("gen.", "dis.")]
    statistics = [{key: jnp.zeros(a.shape) for name, a in p.items() if name.endswith(".beta")
                   for key in (name.replace("beta", "mean"), name.replace("beta", "var"))} for p in (gen, dis)]
    x, z = jnp.asarray(data["x"].transpose(0, 2, 3, 1)), jnp.asarray(data["z"])

    def of_generator(gen, dis, z, of_gen, of_dis):
        y = judged(dis, generated(gen, z, of_gen, bottom, width), of_dis, layers)
        return jnp.mean(jax.nn.softplus(-y))

    def of_critic(dis, fake, x, of_dis):
        loss = jnp.mean(jax.nn.softplus(-judged(dis, x, of_dis, layers)))
        return loss + jnp.mean(jax.nn.softplus(judged(dis, fake, of_dis, layers))), of_dis

    @functools.partial(jax.jit, donate_argnums=0)
    def update(kept, x, z):
        (gen, gen_state, of_gen), (dis, dis_state, of_dis) = kept
        fake = jax.lax.stop_gradient(generated(gen, z, dict(of_gen), bottom, width))
        (loss, new_of_dis), g_dis = jax.value_and_grad(lambda p: of_critic(p, fake, x, dict(of_dis)), has_aux=True)(dis)

        def with_statistics(p):
            found = dict(of_gen)
            return of_generator(p, dis, z, found, dict(of_dis)), found
        (_, of_gen), g_gen = jax.value_and_grad(with_statistics, has_aux=True)(gen)
        rule = functools.partial(adam, rate=workloads.GAN_RATE, betas=workloads.GAN_BETAS, decay=workloads.GAN_DECAY)
        return ((*rule(gen, gen_state, g_gen), of_gen), (*rule(dis, dis_state, g_dis), new_of_dis)), loss
    kept = [tuple((p, start("adam", p), s) for p, s in zip((gen, dis), statistics))]

    def step():
        kept[0], loss = update(kept[0], x, z)
        return loss
    return Case(step, lambda loss: [float(loss)], lambda loss: jax.block_until_ready((kept, loss)))
