"""The workloads in JAX: everything under jit, whole training steps with the update in them.

Loops on data are written with `lax` by hand, as JAX wants them; convolutions are NHWC, its favourite.
"""
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from cases import Case, Cells
from workloads import LONGEST, RATE, RATE_OF_CNN, RATE_OF_MAML, SECOND_NORM, TOLERANCE, iterations_of, residual_blocks, stages_of

VERSION = f"JAX {jax.__version__}"
CELLS = Cells()


def weights_of(data):
    """The weights alone, those of linear layers turned once to (in, out)."""
    kept = {name: array for name, array in data.items() if "." in name}
    turned = {name: array.T.copy() for name, array in kept.items() if array.ndim == 2 and name.endswith(".W") and name != "embed.W"}
    return {name: jnp.asarray(turned.get(name, array)) for name, array in kept.items()}


def inputs_of(data, *names):
    return [jnp.asarray(data[name]) for name in names]


def linear(p, name, x):
    return x @ p[name + ".W"] + p[name + ".b"]


def cross_entropy(y, t):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(y), t[..., None], axis=-1))


def supervised(cell, p, loss, arguments, rate=RATE):
    """The case of loss(p, *arguments), which gives the loss and new statistics: gradients, or the whole step."""
    @jax.jit
    def gradients(p, *arguments):
        (value, _), found = jax.value_and_grad(loss, has_aux=True)(p, *arguments)
        return value, found

    @functools.partial(jax.jit, donate_argnums=0)
    def update(p, *arguments):
        (value, statistics), found = jax.value_and_grad(loss, has_aux=True)(p, *arguments)
        return {**jax.tree.map(lambda a, g: a - rate * g, p, found), **statistics}, value, found

    if cell.endswith(".grad"):
        return Case(lambda: gradients(p, *arguments), lambda found: [float(found[0]), norm(found[1].values())],
                    wait=jax.block_until_ready)
    state = [p]

    def step():
        state[0], value, found = update(state[0], *arguments)
        return value, found

    def wait(found):
        jax.block_until_ready(state[0])
        found[0].block_until_ready()
    return Case(step, lambda found: [float(found[0]), norm(found[1].values())], wait, checked=4)


def plain(loss):
    """A loss that has no statistics."""
    return lambda *arguments: (loss(*arguments), {})


def inference(function, arguments, check=None):
    function = jax.jit(function)
    return Case(lambda: function(*arguments), check or digest, wait=jax.block_until_ready)


def digest(y):
    total = np.asarray(y, dtype=np.float64)
    return [total.sum(), np.abs(total).sum()]


def norm(gradients):
    return float(np.sqrt(sum((np.asarray(g, np.float64) ** 2).sum() for g in gradients)))


# ---- W1, W2

def apply_mlp(p, x, activation):
    return linear(p, "l3", activation(linear(p, "l2", activation(linear(p, "l1", x)))))


@CELLS.of("W1.infer W1.grad W1.train W2.infer W2.grad W2.train", "jit")
def mlp(data, cell, mode):
    activation = jax.nn.relu if cell.startswith("W1.") else jnp.tanh
    p, (x, t) = weights_of(data), inputs_of(data, "x", "t")
    if cell.endswith("infer"):
        return inference(lambda p, x: apply_mlp(p, x, activation), (p, x))
    return supervised(cell, p, plain(lambda p, x, t: cross_entropy(apply_mlp(p, x, activation), t)), (x, t))


# ---- W3

def rnn_scan(p, x, lengths):
    """All steps, however short the examples are: what can be differentiated."""
    def body(h, now):
        new = jnp.tanh(linear(p, "wx", now[0]) + h @ p["wh.W"])
        mask = (now[1] < lengths)[:, None]
        return jnp.where(mask, new, h), jnp.where(mask, new, 0.0)
    h, states = lax.scan(body, jnp.zeros(x.shape[1:], x.dtype), (x, jnp.arange(x.shape[0])))
    return linear(p, "out", h), states


def rnn_while(p, x, lengths):
    """Up to the longest example: forward only."""
    def body(state):
        i, h, states = state
        new = jnp.tanh(linear(p, "wx", x[i]) + h @ p["wh.W"])
        mask = (i < lengths)[:, None]
        return i + 1, jnp.where(mask, new, h), states.at[i].set(jnp.where(mask, new, 0.0))
    longest = jnp.max(lengths)
    _, h, states = lax.while_loop(lambda state: state[0] < longest, body, (0, jnp.zeros(x.shape[1:], x.dtype), jnp.zeros_like(x)))
    return linear(p, "out", h), states


def rnn_loss(p, x, lengths, t):
    y, states = rnn_scan(p, x, lengths)
    return cross_entropy(y, t) + 0.5 * jnp.sum(states * states) / x.size


@CELLS.of("W3.grad W3.train", "jit")
def rnn_training(data, cell, mode):
    return supervised(cell, weights_of(data), plain(rnn_loss), inputs_of(data, "x", "lengths", "t"))


CELLS.cannot_do("W3.grad W3.train", "jit_while", "no gradients through lax.while_loop; jit is a scan")


@CELLS.of("W3.infer W3.varlen", "jit", "jit_while")
def rnn(data, cell, mode):
    function = rnn_while if mode == "jit_while" else rnn_scan
    p, x = weights_of(data), jnp.asarray(data["x"])
    if cell == "W3.infer":
        return inference(function, (p, x, jnp.asarray(data["lengths"])), digest_of_pair)
    function, lengths = jax.jit(function), [jnp.asarray(row) for row in data["varlen"]]

    def step():
        lengths.append(lengths.pop(0))
        return function(p, x, lengths[-1])
    return Case(step, digest_of_pair, jax.block_until_ready, checked=len(lengths))


def digest_of_pair(pair):
    return digest(pair[0]) + digest(pair[1])


# ---- W4

def apply_language_model(p, words):
    start = jnp.zeros((words.shape[1], p["embed.W"].shape[1]))

    def lstm(name, x, state):
        h, c = state
        g, i, f, o = jnp.split(linear(p, name + ".x", x) + h @ p[name + ".h.W"], 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return h, (h, c)

    def body(states, word):
        h, first = lstm("l1", p["embed.W"][word], states[0])
        h, second = lstm("l2", h, states[1])
        return (first, second), h
    _, hs = lax.scan(body, ((start, start), (start, start)), words)
    return linear(p, "l3", hs)


def language_loss(p, x, t):
    return cross_entropy(apply_language_model(p, x), t)


@CELLS.of("W4.infer W4.grad W4.train", "jit")
def language_model(data, cell, mode):
    p, (x, t) = weights_of(data), inputs_of(data, "x", "t")
    if cell == "W4.infer":
        return inference(apply_language_model, (p, x))
    return supervised(cell, p, plain(language_loss), (x, t))


# ---- W5

def convolution(x, weights, stride):
    pad = [(weights.shape[0] // 2,) * 2] * 2
    return lax.conv_general_dilated(x, weights, (stride, stride), pad, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def normalised(p, name, x, statistics, stride=1, relu=True):
    """Convolution, batch normalisation, relu; ``statistics`` takes the running ones, or is None in inference."""
    h = convolution(x, p[name + ".W"], stride)
    if statistics is None:
        mean, variance = p[name + ".mean"], p[name + ".var"]
    else:
        mean = h.mean((0, 1, 2))
        variance = jnp.mean((h - mean) ** 2, (0, 1, 2))
        n = h.size // h.shape[-1]
        statistics[name + ".mean"] = 0.9 * p[name + ".mean"] + 0.1 * mean
        statistics[name + ".var"] = 0.9 * p[name + ".var"] + 0.1 * variance * (n / (n - 1.0))
    h = (h - mean) * (lax.rsqrt(variance + 1e-5) * p[name + ".gamma"]) + p[name + ".beta"]
    return jax.nn.relu(h) if relu else h


def pooled(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def apply_vgg(p, x, statistics):
    h = pooled(normalised(p, "c2", normalised(p, "c1", x, statistics), statistics))
    h = pooled(normalised(p, "c4", normalised(p, "c3", h, statistics), statistics))
    return linear(p, "f2", jax.nn.relu(linear(p, "f1", h.reshape(h.shape[0], -1))))


def vgg_loss(p, x, t):
    statistics = {}
    loss = cross_entropy(apply_vgg(p, x, statistics), t)
    return loss, {name: lax.stop_gradient(value) for name, value in statistics.items()}


def channels_last(data):
    """The weights and images for NHWC; the columns of the first linear layer follow."""
    data = dict(data)
    if "f1.W" in data:
        n, channels = len(data["f1.W"]), len(data["c4.W"])
        size = int((data["f1.W"].shape[1] // channels) ** 0.5)
        data["f1.W"] = data["f1.W"].reshape(n, channels, size, size).transpose(0, 2, 3, 1).reshape(n, -1)
    return {name: np.ascontiguousarray(a.transpose((0, 2, 3, 1) if name == "x" else (2, 3, 1, 0)) if a.ndim == 4 else a)
            for name, a in data.items()}


@CELLS.of("W5.infer W5.grad W5.train", "jit")
def vgg(data, cell, mode):
    data = channels_last(data)
    p, (x, t) = weights_of(data), inputs_of(data, "x", "t")
    if cell == "W5.infer":
        return inference(lambda p, x: apply_vgg(p, x, None), (p, x))
    return supervised(cell, p, vgg_loss, (x, t), RATE_OF_CNN)


def apply_resnet(p, x, stages, statistics=None):
    h = normalised(p, "stem", x, statistics)
    for name, n_in, n_out, stride in residual_blocks(stages):
        y = normalised(p, name + ".c2", normalised(p, name + ".c1", h, statistics, stride), statistics, relu=False)
        h = jax.nn.relu(y + (normalised(p, name + ".sc", h, statistics, stride, relu=False) if n_in != n_out else h))
    return linear(p, "fc", h.mean((1, 2)))


@CELLS.of("W5.res1 W5.res32", "jit")
def resnet(data, cell, mode):
    stages, data = stages_of(data), channels_last(data)
    x = jnp.asarray(data["x"][:1] if cell == "W5.res1" else data["x"])
    return inference(lambda p, x: apply_resnet(p, x, stages), (weights_of(data), x))


# ---- W6

def gelu_norm(x, w, b, gamma, beta):
    h = jax.nn.gelu(x * w + b, approximate=True)
    mean = h.mean(1, keepdims=True)
    variance = jnp.mean((h - mean) ** 2, 1, keepdims=True)
    return jnp.sum((h - mean) * lax.rsqrt(variance + 1e-5) * gamma + beta)


@CELLS.of("W6.infer W6.grad", "jit")
def gelu_and_norm(data, cell, mode):
    arguments = inputs_of(data, "x", "w", "b", "gamma", "beta")
    if cell == "W6.infer":
        return inference(gelu_norm, arguments, lambda y: [float(y)])
    return inference(jax.value_and_grad(gelu_norm, argnums=(0, 1, 2, 3, 4)), arguments,
                     lambda found: [float(found[0]), norm(found[1][:1]), norm(found[1][1:3]), norm(found[1][3:])])


# ---- W7

def newton_step(a, b, x):
    d = (x * x * x + a * x - b) / (3.0 * x * x + a)
    err = jnp.max(jnp.abs(d))
    return x - lax.cond(err > 0.5, lambda d: d * (0.5 / lax.stop_gradient(err)), lambda d: 0.25 * d, d), err


def newton(a, b, x, c):
    def body(state):
        x, err = newton_step(a, b, state[0])
        return x, err, state[2] + 1
    x, _, steps = lax.while_loop(lambda state: state[1] > TOLERANCE, body, (x, jnp.float32(1e9), 0))
    return jnp.sum(x * c), steps


def newton_bounded(a, b, x, c, most=80):
    """A scan of so many steps, guessed by hand, of which the last do nothing: the usual way to a gradient."""
    def body(state, _):
        def go(x):
            new, err = newton_step(a, b, x)
            return new, lax.stop_gradient(err), state[2] + 1
        return lax.cond(state[1] > TOLERANCE, go, lambda x: (x, *state[1:]), state[0]), None
    (x, _, steps), _ = lax.scan(body, (x, jnp.float32(1e9), 0), None, length=most)
    return jnp.sum(x * c), steps


@CELLS.of("W7.infer", "jit")
def newton_forward(data, cell, mode):
    return inference(newton, inputs_of(data, "a", "b", "x", "c"), lambda found: [float(found[0]), int(found[1])])


@CELLS.of("W7.grad", "jit_bounded")
def newton_gradient(data, cell, mode):
    return inference(jax.value_and_grad(newton_bounded, argnums=(0, 1), has_aux=True), inputs_of(data, "a", "b", "x", "c"),
                     lambda found: [float(found[0][0]), int(found[0][1]), norm(found[1][:1]), norm(found[1][1:])])


CELLS.cannot_do("W7.grad", "jit", "no gradients through lax.while_loop; jit_bounded is a scan, its length guessed by hand")


# ---- W8

def apply_decoder(p, h, beams=4):
    n_words = len(p["out.b"])
    after_end = jnp.full((1, n_words), -1e9).at[0, 0].set(0)

    def gru(h, x):
        x_r, x_z, x_h = jnp.split(linear(p, "x", x), 3, 1)
        h_r, h_z = jnp.split(linear(p, "gates", h), 2, 1)
        r, z = jax.nn.sigmoid(x_r + h_r), jax.nn.sigmoid(x_z + h_z)
        return (1 - z) * h + z * jnp.tanh(x_h + linear(p, "inner", r * h))

    def body(state):
        i, h, word, score, ended, found = state
        h = gru(h, p["embed.W"][word])
        likely = jnp.where(ended[:, None], after_end, jax.nn.log_softmax(linear(p, "out", h)))
        score, best = lax.top_k((score[:, None] + likely).reshape(-1), beams)
        parent, word = best // n_words, best % n_words
        return i + 1, h[parent], word, score, ended[parent] | (word == 0), found[parent].at[:, i].set(word)
    start = (0, jnp.broadcast_to(h, (beams, h.shape[1])), jnp.ones(beams, "int32"), jnp.array([0, -1e9, -1e9, -1e9], "float32"),
             jnp.zeros(beams, bool), jnp.zeros((beams, LONGEST), "int32"))
    end = lax.while_loop(lambda state: (state[0] < LONGEST) & ~jnp.all(state[4]), body, start)
    return end[3], end[5], end[0]


@CELLS.of("W8.infer", "jit")
def beam_search(data, cell, mode):
    joined = {"embed.W": data["embed.W"], "out.W": data["out.W"], "out.b": data["out.b"]}
    for name, parts in (("x", ("W_r", "W_z", "W")), ("gates", ("U_r", "U_z")), ("inner", ("U",))):
        for kind in "Wb":
            joined[f"{name}.{kind}"] = np.concatenate([data[f"gru.{part}.{kind}"] for part in parts])
    return inference(apply_decoder, (weights_of(joined), jnp.asarray(data["x"])),
                     lambda r: [float(r[0][0]), float(r[0][-1]), int(r[1].sum()), int(r[2])])


# ---- W9

def logistic_loss(w, x, t):
    return jnp.mean(jax.nn.softplus(-(x @ w) * t)) + 0.5 * SECOND_NORM * jnp.sum(w * w)


def lbfgs(x, t, memory=10):
    alone = lambda w: logistic_loss(w, x, t)
    with_gradient = jax.value_and_grad(alone)
    size = x.shape[1]
    w = jnp.zeros(size)
    f, g = with_gradient(w)

    def body(_, state):
        w, f, g, s_all, y_all, rho, scale = state
        q = g
        factors = [None] * memory
        for i in reversed(range(memory)):
            factors[i] = rho[i] * s_all[i].dot(q)
            q = q - factors[i] * y_all[i]
        q = q * scale
        for i in range(memory):
            q = q + (factors[i] - rho[i] * y_all[i].dot(q)) * s_all[i]
        p = -q
        slope = g.dot(p)

        def halve(state):
            length = state[0] * 0.5
            return length, alone(w + length * p), state[2] + 1
        length, _, _ = lax.while_loop(lambda state: (state[1] > f + 1e-4 * state[0] * slope) & (state[2] < 20),
                                      halve, (jnp.float32(1), alone(w + p), 0))
        new = w + length * p
        f, g_new = with_gradient(new)
        s, y = new - w, g_new - g
        sy = s.dot(y)
        rho = jnp.concatenate([rho[1:], jnp.where(sy > 1e-10, 1 / sy, 0.0)[None]])
        return (new, f, g_new, jnp.concatenate([s_all[1:], s[None]]), jnp.concatenate([y_all[1:], y[None]]), rho,
                sy / jnp.maximum(y.dot(y), 1e-20))
    start = (w, f, g, jnp.zeros((memory, size)), jnp.zeros((memory, size)), jnp.zeros(memory), 1 / jnp.sqrt(g.dot(g)))
    end = lax.fori_loop(0, iterations_of(x), body, start)
    return end[1], end[0]


@CELLS.of("W9.lbfgs", "jit")
def minimisation(data, cell, mode):
    return inference(lbfgs, inputs_of(data, "x", "t"), lambda found: [float(found[0]), float(jnp.abs(found[1]).sum())])


# ---- W10

def sine_loss(p, x, y):
    return jnp.mean((apply_mlp(p, x, jax.nn.relu) - y) ** 2)


def task_loss(p, xs, ys, xq, yq, steps=1):
    for _ in range(steps):
        gradients = jax.grad(sine_loss)(p, xs, ys)
        p = jax.tree.map(lambda a, g: a - 0.01 * g, p, gradients)
    return sine_loss(p, xq, yq)


def maml_loss_of(mode, steps=1):
    """The mean loss of all tasks, one after the other or with vmap."""
    def loss(p, *tasks):
        if mode == "jit_vmap":
            return jnp.mean(jax.vmap(lambda *task: task_loss(p, *task, steps))(*tasks))
        return sum(task_loss(p, *(part[i] for part in tasks), steps) for i in range(len(tasks[0]))) / len(tasks[0])
    return loss


@CELLS.of("W10.grad W10.train", "jit", "jit_vmap")
def maml(data, cell, mode):
    return supervised(cell, weights_of(data), plain(maml_loss_of(mode)), inputs_of(data, "xs", "ys", "xq", "yq"), RATE_OF_MAML)


# ---- W11

def layer_norm(p, name, x):
    mean = x.mean(-1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, -1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p[name + ".gamma"] + p[name + ".beta"]


def block(p, x, heads=4):
    n, length, units = x.shape
    h = layer_norm(p, "ln1", x)
    q, k, v = (linear(p, name, h).reshape(n, length, heads, units // heads) for name in "qkv")
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) * (units // heads) ** -0.5)
    x = x + linear(p, "o", jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(n, length, units))
    return x + linear(p, "f2", jax.nn.relu(linear(p, "f1", layer_norm(p, "ln2", x))))


def squared_error(p, x, t):
    return jnp.mean((block(p, x) - t) ** 2)


@CELLS.of("W11.infer W11.grad W11.train", "jit")
def transformer(data, cell, mode):
    p, (x, t) = weights_of(data), inputs_of(data, "x", "t")
    if cell == "W11.infer":
        return inference(block, (p, x))
    return supervised(cell, p, plain(squared_error), (x, t))


# ---- W12

@CELLS.of("W12.call", "jit")
def call(data, cell, mode):
    return inference(lambda x: x + 1, inputs_of(data, "x"))
