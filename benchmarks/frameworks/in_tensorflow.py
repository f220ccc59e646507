"""The workloads in TensorFlow: tf.function with AutoGraph, and the same compiled by XLA.

Whole training steps, with the update, are in the function; convolutions are NHWC.
"""
import os

import numpy as np
import tensorflow as tf

from cases import Case, Cells
from workloads import LONGEST, RATE, RATE_OF_CNN, RATE_OF_MAML, SECOND_NORM, TOLERANCE, iterations_of, residual_blocks, stages_of

tf.config.threading.set_intra_op_parallelism_threads(int(os.environ["OMP_NUM_THREADS"]))
tf.config.threading.set_inter_op_parallelism_threads(int(os.environ["OMP_NUM_THREADS"]))
VERSION = f"TensorFlow {tf.__version__}"
CELLS = Cells()
MODES = "function", "function_xla"


def compiled(function, mode):
    return tf.function(function, jit_compile=True if mode.endswith("xla") else None)


def variables(data):
    """The weights alone, those of linear layers turned once to (in, out)."""
    made = {}
    for name, array in data.items():
        if "." in name:
            turned = array.T.copy() if array.ndim == 2 and name.endswith(".W") and name != "embed.W" else array
            made[name] = tf.Variable(turned, trainable=not name.endswith((".mean", ".var")), name=name.replace(".", "_"))
    return made


def inputs_of(data, *names):
    return [tf.constant(data[name]) for name in names]


def linear(p, name, x):
    return tf.matmul(x, p[name + ".W"]) + p[name + ".b"]


def cross_entropy(y, t):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=y))


def supervised(cell, mode, p, loss, arguments, rate=RATE):
    """The case of loss(p, *arguments): gradients, or the whole step."""
    trained = [v for v in p.values() if v.trainable]

    def step(*arguments):
        with tf.GradientTape() as tape:
            value = loss(p, *arguments)
        found = [tf.convert_to_tensor(g) for g in tape.gradient(value, trained)]
        if cell.endswith(".train"):
            for variable, gradient in zip(trained, found):
                variable.assign_sub(rate * gradient)
        return value, found
    function = compiled(step, mode)
    return Case(lambda: function(*arguments), lambda found: [float(found[0]), norm(found[1])],
                checked=4 if cell.endswith(".train") else 1)


def inference(mode, function, arguments, check=None):
    function = compiled(function, mode)
    return Case(lambda: function(*arguments), check or digest)


def digest(y):
    total = y.numpy().astype(np.float64)
    return [total.sum(), np.abs(total).sum()]


def norm(gradients):
    return float(np.sqrt(sum((g.numpy().astype(np.float64) ** 2).sum() for g in gradients)))


# ---- W1, W2

def apply_mlp(p, x, activation):
    return linear(p, "l3", activation(linear(p, "l2", activation(linear(p, "l1", x)))))


@CELLS.of("W1.infer W1.grad W1.train W2.infer W2.grad W2.train", *MODES)
def mlp(data, cell, mode):
    activation = tf.nn.relu if cell.startswith("W1.") else tf.tanh
    p, (x, t) = variables(data), inputs_of(data, "x", "t")
    if cell.endswith("infer"):
        return inference(mode, lambda x: apply_mlp(p, x, activation), (x,))
    return supervised(cell, mode, p, lambda p, x, t: cross_entropy(apply_mlp(p, x, activation), t), (x, t))


# ---- W3

def rnn(p, x, lengths):
    h = tf.zeros_like(x[0])
    zero = tf.zeros_like(x[0])
    longest = tf.reduce_max(lengths)
    states = tf.TensorArray(tf.float32, size=longest)
    for i in tf.range(longest):
        new = tf.tanh(linear(p, "wx", x[i]) + tf.matmul(h, p["wh.W"]))
        mask = (i < lengths)[:, None]
        h = tf.where(mask, new, h)
        states = states.write(i, tf.where(mask, new, zero))
    return linear(p, "out", h), states.stack()


def rnn_bounded(p, x, lengths):
    """With the most steps given by hand, which XLA wants for the gradient."""
    h = tf.zeros_like(x[0])
    zero = tf.zeros_like(x[0])
    steps = x.shape[0]
    states = tf.TensorArray(tf.float32, size=steps, element_shape=x.shape[1:])
    for i in tf.range(tf.reduce_max(lengths)):
        tf.autograph.experimental.set_loop_options(maximum_iterations=steps)
        new = tf.tanh(linear(p, "wx", x[i]) + tf.matmul(h, p["wh.W"]))
        mask = (i < lengths)[:, None]
        h = tf.where(mask, new, h)
        states = states.write(i, tf.where(mask, new, zero))
    return linear(p, "out", h), states.stack()


@CELLS.of("W3.infer W3.varlen W3.grad W3.train", *MODES, "function_max_xla")
def rnn_cells(data, cell, mode):
    p, (x, lengths, t) = variables(data), inputs_of(data, "x", "lengths", "t")
    apply = rnn_bounded if "max" in mode else rnn

    def loss(p, x, lengths, t):
        y, states = apply(p, x, lengths)
        return cross_entropy(y, t) + 0.5 * tf.reduce_sum(states * states) / float(data["x"].size)
    if cell in ("W3.grad", "W3.train"):
        return supervised(cell, mode, p, loss, (x, lengths, t))
    function = compiled(lambda x, lengths: apply(p, x, lengths), mode)
    turns = inputs_of(data, "varlen")[0] if cell == "W3.varlen" else lengths[None]
    turns = list(turns)

    def step():
        turns.append(turns.pop(0))
        return function(x, turns[-1])
    return Case(step, digest_of_pair, checked=len(turns))


def digest_of_pair(pair):
    return digest(pair[0]) + digest(pair[1])


# ---- W4

def lstm(p, name, x, h, c):
    g, i, f, o = tf.split(linear(p, name + ".x", x) + tf.matmul(h, p[name + ".h.W"]), 4, axis=1)
    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
    return tf.sigmoid(o) * tf.tanh(c), c


def unrolled(p, words):
    h1 = c1 = h2 = c2 = tf.zeros((words.shape[1], p["embed.W"].shape[1]))
    outputs = []
    for i in range(words.shape[0]):
        h1, c1 = lstm(p, "l1", tf.gather(p["embed.W"], words[i]), h1, c1)
        h2, c2 = lstm(p, "l2", h1, h2, c2)
        outputs.append(linear(p, "l3", h2))
    return tf.stack(outputs)


def looped(p, words):
    start = tf.zeros((words.shape[1], p["embed.W"].shape[1]))
    h1, c1, h2, c2 = start, start, start, start
    outputs = tf.TensorArray(tf.float32, size=words.shape[0], element_shape=(words.shape[1], p["embed.W"].shape[0]))
    for i in tf.range(words.shape[0]):
        h1, c1 = lstm(p, "l1", tf.gather(p["embed.W"], words[i]), h1, c1)
        h2, c2 = lstm(p, "l2", h1, h2, c2)
        outputs = outputs.write(i, linear(p, "l3", h2))
    return outputs.stack()


@CELLS.of("W4.infer W4.grad W4.train", *MODES, "function_loop", "function_loop_xla")
def language_model(data, cell, mode):
    p, (x, t) = variables(data), inputs_of(data, "x", "t")
    apply = looped if "loop" in mode else unrolled
    if cell == "W4.infer":
        return inference(mode, lambda x: apply(p, x), (x,))
    return supervised(cell, mode, p, lambda p, x, t: cross_entropy(apply(p, x), t), (x, t))


# ---- W5

def normalised(p, name, x, training, stride=1, relu=True):
    weights = p[name + ".W"]
    r = weights.shape[0] // 2
    h = tf.nn.conv2d(x, weights, stride, "SAME" if stride == 1 else [[0, 0], [r, r], [r, r], [0, 0]])
    gamma, beta, mean, variance = (p[f"{name}.{kind}"] for kind in ("gamma", "beta", "mean", "var"))
    if training:
        h, mean_now, variance_now = tf.compat.v1.nn.fused_batch_norm(h, gamma, beta, epsilon=1e-5)
        mean.assign(0.9 * mean + 0.1 * mean_now)
        variance.assign(0.9 * variance + 0.1 * variance_now)
    else:
        h, _, _ = tf.compat.v1.nn.fused_batch_norm(h, gamma, beta, mean, variance, epsilon=1e-5, is_training=False)
    return tf.nn.relu(h) if relu else h


def pooled(x):
    return tf.nn.max_pool2d(x, 2, 2, "VALID")


def apply_vgg(p, x, training):
    h = pooled(normalised(p, "c2", normalised(p, "c1", x, training), training))
    h = pooled(normalised(p, "c4", normalised(p, "c3", h, training), training))
    return linear(p, "f2", tf.nn.relu(linear(p, "f1", tf.reshape(h, (h.shape[0], -1)))))


def channels_last(data):
    """The weights and images for NHWC; the columns of the first linear layer follow."""
    data = dict(data)
    if "f1.W" in data:
        n, channels = len(data["f1.W"]), len(data["c4.W"])
        size = int((data["f1.W"].shape[1] // channels) ** 0.5)
        data["f1.W"] = data["f1.W"].reshape(n, channels, size, size).transpose(0, 2, 3, 1).reshape(n, -1)
    return {name: np.ascontiguousarray(a.transpose((0, 2, 3, 1) if name == "x" else (2, 3, 1, 0)) if a.ndim == 4 else a)
            for name, a in data.items()}


@CELLS.of("W5.infer W5.grad W5.train", *MODES)
def vgg(data, cell, mode):
    data = channels_last(data)
    p, (x, t) = variables(data), inputs_of(data, "x", "t")
    if cell == "W5.infer":
        return inference(mode, lambda x: apply_vgg(p, x, False), (x,))
    return supervised(cell, mode, p, lambda p, x, t: cross_entropy(apply_vgg(p, x, True), t), (x, t), RATE_OF_CNN)


def apply_resnet(p, x, stages):
    h = normalised(p, "stem", x, False)
    for name, n_in, n_out, stride in residual_blocks(stages):
        y = normalised(p, name + ".c2", normalised(p, name + ".c1", h, False, stride), False, relu=False)
        h = tf.nn.relu(y + (normalised(p, name + ".sc", h, False, stride, relu=False) if n_in != n_out else h))
    return linear(p, "fc", tf.reduce_mean(h, (1, 2)))


@CELLS.of("W5.res1 W5.res32", *MODES)
def resnet(data, cell, mode):
    stages, data = stages_of(data), channels_last(data)
    p, x = variables(data), tf.constant(data["x"][:1] if cell == "W5.res1" else data["x"])
    return inference(mode, lambda x: apply_resnet(p, x, stages), (x,))


# ---- W6

def gelu_norm(x, w, b, gamma, beta):
    h = tf.nn.gelu(x * w + b, approximate=True)
    mean, variance = tf.nn.moments(h, [1], keepdims=True)
    return tf.reduce_sum((h - mean) * tf.math.rsqrt(variance + 1e-5) * gamma + beta)


@CELLS.of("W6.infer W6.grad", *MODES)
def gelu_and_norm(data, cell, mode):
    arguments = inputs_of(data, "x", "w", "b", "gamma", "beta")
    if cell == "W6.infer":
        return inference(mode, gelu_norm, arguments, lambda y: [float(y)])

    def with_gradients(*arguments):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            y = gelu_norm(*arguments)
        return y, tape.gradient(y, arguments)
    return inference(mode, with_gradients, arguments,
                     lambda found: [float(found[0]), norm(found[1][:1]), norm(found[1][1:3]), norm(found[1][3:])])


# ---- W7

def newton(a, b, x):
    err = tf.constant(1e9)
    steps = 0
    while err > TOLERANCE:
        d = (x * x * x + a * x - b) / (3.0 * x * x + a)
        err = tf.stop_gradient(tf.reduce_max(tf.abs(d)))
        if err > 0.5:
            d = d * (0.5 / err)
        else:
            d = 0.25 * d
        x = x - d
        steps += 1
    return x, steps


def newton_bounded(a, b, x):
    err = tf.constant(1e9)
    steps = 0
    while err > TOLERANCE:
        tf.autograph.experimental.set_loop_options(maximum_iterations=80)
        d = (x * x * x + a * x - b) / (3.0 * x * x + a)
        err = tf.stop_gradient(tf.reduce_max(tf.abs(d)))
        if err > 0.5:
            d = d * (0.5 / err)
        else:
            d = 0.25 * d
        x = x - d
        steps += 1
    return x, steps


@CELLS.of("W7.infer", *MODES)
@CELLS.of("W7.grad", *MODES, "function_max_xla")
def newton_iteration(data, cell, mode):
    arguments = inputs_of(data, "a", "b", "x", "c")
    solve = newton_bounded if "max" in mode else newton

    def forward(a, b, x, c):
        x, steps = solve(a, b, x)
        return tf.reduce_sum(x * c), steps

    def with_gradients(a, b, x, c):
        with tf.GradientTape() as tape:
            tape.watch((a, b))
            y, steps = forward(a, b, x, c)
        return y, steps, tape.gradient(y, (a, b))
    if cell == "W7.infer":
        return inference(mode, forward, arguments, lambda found: [float(found[0]), int(found[1])])
    return inference(mode, with_gradients, arguments,
                     lambda found: [float(found[0]), int(found[1]), norm(found[2][:1]), norm(found[2][1:])])


# ---- W8

def apply_decoder(p, h):
    beams, n_words = 4, p["out.b"].shape[0]
    after_end = tf.where(tf.range(n_words) == 0, 0.0, -1e9)[None]
    h = tf.repeat(h, beams, axis=0)
    word = tf.ones(beams, tf.int32)
    score = tf.constant([0, -1e9, -1e9, -1e9])
    ended = tf.zeros(beams, tf.bool)
    found = tf.zeros((beams, LONGEST), tf.int32)
    i = tf.constant(0)
    while i < LONGEST and not tf.reduce_all(ended):
        x_r, x_z, x_h = tf.split(linear(p, "x", tf.gather(p["embed.W"], word)), 3, axis=1)
        h_r, h_z = tf.split(linear(p, "gates", h), 2, axis=1)
        r, z = tf.sigmoid(x_r + h_r), tf.sigmoid(x_z + h_z)
        h = (1 - z) * h + z * tf.tanh(x_h + linear(p, "inner", r * h))
        likely = tf.where(ended[:, None], after_end, tf.nn.log_softmax(linear(p, "out", h)))
        score, best = tf.math.top_k(tf.reshape(score[:, None] + likely, [-1]), beams)
        parent = best // n_words
        word = best % n_words
        h = tf.gather(h, parent)
        found = tf.where(tf.range(LONGEST)[None] == i, word[:, None], tf.gather(found, parent))
        ended = tf.gather(ended, parent) | (word == 0)
        i += 1
    return score, found, i


@CELLS.of("W8.infer", *MODES)
def beam_search(data, cell, mode):
    joined = {"embed.W": data["embed.W"], "out.W": data["out.W"], "out.b": data["out.b"]}
    for name, parts in (("x", ("W_r", "W_z", "W")), ("gates", ("U_r", "U_z")), ("inner", ("U",))):
        for kind in "Wb":
            joined[f"{name}.{kind}"] = np.concatenate([data[f"gru.{part}.{kind}"] for part in parts])
    p = variables(joined)
    return inference(mode, lambda h: apply_decoder(p, h), inputs_of(data, "x"),
                     lambda r: [float(r[0][0]), float(r[0][-1]), int(tf.reduce_sum(r[1])), int(r[2])])


# ---- W9

def logistic_loss(w, x, t):
    return tf.reduce_mean(tf.nn.softplus(-tf.linalg.matvec(x, w) * t)) + 0.5 * SECOND_NORM * tf.reduce_sum(w * w)


def dot(a, b):
    return tf.reduce_sum(a * b)


def with_gradient(w, x, t):
    with tf.GradientTape() as tape:
        tape.watch(w)
        loss = logistic_loss(w, x, t)
    return loss, tape.gradient(loss, w)


def lbfgs(x, t):
    iterations, memory, size = iterations_of(x), 10, x.shape[1]
    w = tf.zeros(size)
    f, g = with_gradient(w, x, t)
    s_all, y_all, rho = tf.zeros((memory, size)), tf.zeros((memory, size)), tf.zeros(memory)
    scale = 1 / tf.sqrt(dot(g, g))
    for _ in tf.range(iterations):
        q = g
        factors = []
        for i in range(memory - 1, -1, -1):
            a = rho[i] * dot(s_all[i], q)
            q = q - a * y_all[i]
            factors.append(a)
        q = q * scale
        for i in range(memory):
            q = q + (factors[memory - 1 - i] - rho[i] * dot(y_all[i], q)) * s_all[i]
        p = -q
        slope = dot(g, p)
        length = tf.constant(1.0)
        tried = logistic_loss(w + p, x, t)
        halved = tf.constant(0)
        while tried > f + 1e-4 * length * slope and halved < 20:
            length *= 0.5
            tried = logistic_loss(w + length * p, x, t)
            halved += 1
        new = w + length * p
        f, g_new = with_gradient(new, x, t)
        s = new - w
        y = g_new - g
        sy = dot(s, y)
        s_all = tf.concat([s_all[1:], s[None]], 0)
        y_all = tf.concat([y_all[1:], y[None]], 0)
        rho = tf.concat([rho[1:], tf.where(sy > 1e-10, 1 / sy, 0.0)[None]], 0)
        scale = sy / tf.maximum(dot(y, y), 1e-20)
        w = new
        g = g_new
    return f, w


@CELLS.of("W9.lbfgs", *MODES)
def minimisation(data, cell, mode):
    return inference(mode, lbfgs, inputs_of(data, "x", "t"), lambda found: [float(found[0]), np.abs(found[1]).sum()])


# ---- W10

def sine_loss(p, x, y):
    return tf.reduce_mean((apply_mlp(p, x, tf.nn.relu) - y) ** 2)


@CELLS.of("W10.grad W10.train", *MODES)
def maml(data, cell, mode):
    tasks = len(data["xs"])

    def loss(p, xs, ys, xq, yq):
        total = 0.0
        names = list(p)
        for i in range(tasks):
            with tf.GradientTape() as tape:
                inner = sine_loss(p, xs[i], ys[i])
            gradients = tape.gradient(inner, [p[name] for name in names])
            total += sine_loss({name: p[name] - 0.01 * g for name, g in zip(names, gradients)}, xq[i], yq[i])
        return total / tasks
    return supervised(cell, mode, variables(data), loss, inputs_of(data, "xs", "ys", "xq", "yq"), RATE_OF_MAML)


# ---- W11

def layer_norm(p, name, x):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5) * p[name + ".gamma"] + p[name + ".beta"]


def flat_linear(p, name, x):
    """A linear layer on the last axis, as one product."""
    return tf.reshape(linear(p, name, tf.reshape(x, (-1, x.shape[-1]))), (*x.shape[:-1], -1))


def block(p, x, heads=4):
    n, length, units = x.shape
    h = layer_norm(p, "ln1", x)
    q, k, v = [tf.transpose(tf.reshape(flat_linear(p, name, h), (n, length, heads, units // heads)), (0, 2, 1, 3))
               for name in "qkv"]
    weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * (units // heads) ** -0.5)
    x = x + flat_linear(p, "o", tf.reshape(tf.transpose(tf.matmul(weights, v), (0, 2, 1, 3)), (n, length, units)))
    return x + flat_linear(p, "f2", tf.nn.relu(flat_linear(p, "f1", layer_norm(p, "ln2", x))))


@CELLS.of("W11.infer W11.grad W11.train", *MODES)
def transformer(data, cell, mode):
    p, (x, t) = variables(data), inputs_of(data, "x", "t")
    if cell == "W11.infer":
        return inference(mode, lambda x: block(p, x), (x,))
    return supervised(cell, mode, p, lambda p, x, t: tf.reduce_mean((block(p, x) - t) ** 2), (x, t))


# ---- W12

@CELLS.of("W12.call", *MODES)
def call(data, cell, mode):
    return inference(mode, lambda x: x + 1, inputs_of(data, "x"))
