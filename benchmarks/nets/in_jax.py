"""The networks in JAX, under jit with donated parameters: those that its users write by hand in a few lines."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from cases import Case, Cells
from frameworks import in_jax as models
from nets import workloads

VERSION = models.VERSION
CELLS = Cells()


def begin(mode):
    pass


def parameters(shapes):
    """{name: array}; weights of linear layers are turned once to (in, out)."""
    def turned(name, array):
        return array.T.copy() if name.endswith(".W") and name != "embed.W" else array
    return {name: jnp.asarray(turned(name, workloads.weight(name, shape))) for name, shape in shapes.items()}


def linears(sizes):
    """The shapes of linear layers: {name: (out, in)}."""
    return {f"{name}.{kind}": shape if kind == "W" else shape[:1] for name, shape in sizes.items() for kind in "Wb"}


def train(loss, p, arguments, adam=False):
    state = [p, jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p), jnp.zeros((), jnp.int32)]

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2, 3))
    def update(p, m, v, t, *arguments):
        value, g = jax.value_and_grad(loss)(p, *arguments)
        if not adam:
            return jax.tree.map(lambda a, g: a - workloads.RATE * g, p, g), m, v, t, value
        t = t + 1
        m, v = (jax.tree.map(lambda a, g, b=b, k=k: b * a + (1 - b) * g ** k, a, g) for a, b, k in ((m, 0.9, 1), (v, 0.999, 2)))
        rate = 0.001 * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
        return jax.tree.map(lambda a, m, v: a - rate * m / (jnp.sqrt(v) + 1e-8), p, m, v), m, v, t, value

    def step():
        *state[:], value = update(*state, *arguments)
        return value
    return Case(step, lambda value: [float(value)], wait=lambda value: jax.block_until_ready((state[0], value)), checked=2)


def infer(function, arguments, check=models.digest):
    function = jax.jit(function)
    return Case(lambda: function(*arguments), check, wait=jax.block_until_ready)


# ---- transformers

def layer_shapes(prefix, units):
    sizes = {f"{prefix}.attention.{name}": (units, units) for name in "qkvo"}
    sizes.update({f"{prefix}.f1": (4 * units, units), f"{prefix}.f2": (units, 4 * units)})
    norms = {f"{prefix}.{name}.{kind}": (units,) for name in ("ln1", "ln2") for kind in ("gamma", "beta")}
    return {**linears(sizes), **norms}


def attention(p, prefix, x, heads, causal):
    n, length, units = x.shape
    q, k, v = (models.linear(p, f"{prefix}.{name}", x).reshape(n, length, heads, -1) for name in "qkv")
    context = jax.nn.dot_product_attention(q, k, v, is_causal=causal)
    return models.linear(p, prefix + ".o", context.reshape(n, length, units))


def layer(p, prefix, x, heads, first):
    norm = [functools.partial(models.layer_norm, p, f"{prefix}.{name}") for name in ("ln1", "ln2")]

    def inner(h):
        return models.linear(p, prefix + ".f2", jax.nn.gelu(models.linear(p, prefix + ".f1", h), approximate=False))
    if first:
        x = x + attention(p, prefix + ".attention", norm[0](x), heads, True)
        return x + inner(norm[1](x))
    x = norm[0](x + attention(p, prefix + ".attention", x, heads, False))
    return norm[1](x + inner(x))


def gpt_of(data):
    """The parameters, and the model as a function of them and of words."""
    units, words, heads = data["units"], data["words"], data["heads"]
    shapes = {"embed.W": (words, units), "places": (data["x"].shape[1], units), "norm.gamma": (units,), "norm.beta": (units,),
              **linears({"out": (words, units)})}
    for i in range(data["layers"]):
        shapes.update(layer_shapes(f"layers.{i}", units))

    def model(p, x):
        h = p["embed.W"][x] + p["places"]
        for i in range(data["layers"]):
            h = layer(p, f"layers.{i}", h, heads, True)
        return models.linear(p, "out", models.layer_norm(p, "norm", h))
    return parameters(shapes), model


@CELLS.of("GPT.infer GPT.train", "jit")
def gpt(data, cell, mode):
    (p, model), (x, t) = gpt_of(data), models.inputs_of(data, "x", "t")
    if cell.endswith("infer"):
        return infer(model, (p, x))
    return train(lambda p, x, t: models.cross_entropy(model(p, x), t), p, (x, t), adam=True)


@CELLS.of("BERT.infer BERT.train", "jit")
def bert(data, cell, mode):
    p, (x, t) = parameters(layer_shapes("layer", data["units"])), models.inputs_of(data, "x", "t")

    def model(p, x):
        return layer(p, "layer", x, data["heads"], False)
    return infer(model, (p, x)) if cell.endswith("infer") else train(lambda p, x, t: jnp.mean((model(p, x) - t) ** 2), p, (x, t))


# ---- graphs

@CELLS.of("Graph.infer Graph.train", "jit")
def graph(data, cell, mode):
    units = data["units"]
    p = parameters(linears({f"{name}.{i}": (units, 2 * units) for name in ("messages", "updates") for i in range(2)}))
    x, source, target, t = models.inputs_of(data, "x", "source", "target", "t")

    def model(p, x, source, target):
        for i in range(2):
            m = jax.nn.relu(models.linear(p, f"messages.{i}", jnp.concatenate([x[source], x[target]], 1)))
            total = jnp.zeros_like(x).at[target].add(m)
            x = x + jax.nn.relu(models.linear(p, f"updates.{i}", jnp.concatenate([x, total], 1)))
        return x
    if cell.endswith("infer"):
        return infer(model, (p, x, source, target))
    return train(lambda p, x, s, e, t: jnp.mean((model(p, x, s, e) - t) ** 2), p, (x, source, target, t))


# ---- decoding

def greedy(state, step):
    """Steps until word 1 comes or the number of steps is reached; ``step(i, word, state)`` gives the state and the scores."""
    def more(carried):
        i, word, _, _ = carried
        return (i < workloads.STEPS) & ((i == 0) | (word[0] != 1))

    def body(carried):
        i, word, state, total = carried
        state, y = step(i, word, state)
        return i + 1, jnp.argmax(y, 1).astype(jnp.int32), state, total + jnp.max(y)
    return lax.while_loop(more, body, (0, jnp.zeros(1, jnp.int32), state, jnp.float32(0)))[3].reshape(1)


@CELLS.of("Decode.gru", "jit")
def gru(data, cell, mode):
    units, words = data["units"], data["words"]
    sizes = {"out": (words, units), "x": (3 * units, units), "h": (3 * units, units)}
    p = parameters({"embed.W": (words, units), **linears(sizes)})

    def model(p, h):
        def step(i, word, h):
            rx, zx, nx = jnp.split(models.linear(p, "x", p["embed.W"][word]), 3, 1)
            rh, zh, nh = jnp.split(models.linear(p, "h", h), 3, 1)
            z = jax.nn.sigmoid(zx + zh)
            h = (1 - z) * jnp.tanh(nx + jax.nn.sigmoid(rx + rh) * nh) + z * h
            return h, models.linear(p, "out", h)
        return greedy(h, step)
    return infer(model, (p, jnp.asarray(data["start"])))


@CELLS.of("Decode.cache Decode.lists", "jit")
def attending(data, cell, mode):
    units, words = data["units"], data["words"]
    p = parameters({"embed.W": (words, units), **linears({"out": (words, units), **{name: (units, units) for name in "qkv"}})})

    def model(p, h):
        def step(i, word, state):
            h, keys, values = state
            h = h * 0.5 + p["embed.W"][word]
            keys = lax.dynamic_update_slice(keys, models.linear(p, "k", h), (i, 0))
            values = lax.dynamic_update_slice(values, models.linear(p, "v", h), (i, 0))
            scores = jnp.where(jnp.arange(workloads.STEPS)[None] <= i, models.linear(p, "q", h) @ keys.T * 0.1, -1e9)
            h = jnp.tanh(h + jax.nn.softmax(scores) @ values)
            return (h, keys, values), models.linear(p, "out", h)
        empty = jnp.zeros((workloads.STEPS, units))
        return greedy((h, empty, empty), step)
    return infer(model, (p, jnp.asarray(data["start"])))


# ---- elements

def ten(x, y):
    h = jnp.tanh(x * y + 0.5)
    return (jax.nn.sigmoid(h - y) * jnp.exp(-(x * x)) + jnp.sqrt(jnp.abs(h) + 1)).sum()


@CELLS.of("Elements.infer Elements.grad", "jit")
def elements(data, cell, mode):
    arguments = models.inputs_of(data, "x", "y")
    if cell.endswith("infer"):
        return infer(ten, arguments, lambda value: [float(value)])
    function = jax.jit(jax.value_and_grad(ten, (0, 1)))
    return Case(lambda: function(*arguments), lambda found: [float(found[0]), *(float(np.linalg.norm(g)) for g in found[1])],
                wait=jax.block_until_ready)
