"""The workloads: what is computed, and the weights and inputs that every framework starts from (NumPy only).

Layouts are Chainer's: weights of linear layers are (out, in), of convolutions (out, in, height, width), images are
NCHW.  The gates of an LSTM are kept in blocks (candidate, input, forget, output); each framework permutes them.
"""
import math

import numpy as np

CELLS = {
    "W1.infer": "MLP 784-1000-1000-10, relu, batch 100: inference",
    "W1.grad": "the same: loss and gradients",
    "W1.train": "the same: loss, gradients, update",
    "W2.infer": "MLP 16-64-64-4, tanh, batch 8: inference",
    "W2.grad": "the same: loss and gradients",
    "W2.train": "the same: loss, gradients, update",
    "W3.infer": "tanh RNN, a while loop with a mask of lengths, 256 units, batch 32, 64 steps: inference",
    "W3.varlen": "the same, 8 batches of other lengths in turn, per call",
    "W3.grad": "the same: loss and gradients",
    "W3.train": "the same: loss, gradients, update",
    "W4.infer": "language model of two LSTM layers, 1000 words, 200 units, batch 20, 35 steps: inference",
    "W4.grad": "the same: loss and gradients",
    "W4.train": "the same: loss, gradients, update",
    "W5.infer": "small VGG with batch normalisation, 32 images of 32x32: inference",
    "W5.grad": "the same: loss and gradients",
    "W5.train": "the same: loss, gradients, update",
    "W5.res1": "ResNet-18 (form for CIFAR), one image: inference",
    "W5.res32": "ResNet-18 (form for CIFAR), 32 images: inference",
    "W6.infer": "sum of the layer norm of gelu(x * w + b), 4096x1024: forward",
    "W6.grad": "the same, with the gradients of x, w, b, gamma, beta",
    "W7.infer": "damped Newton iteration, while and if on array values, 64 elements: forward",
    "W7.grad": "the same, with the gradient through the loop",
    "W8.infer": "beam search with a GRU, 4 beams, 500 words, 128 units, at most 20 steps, early exit",
    "W9.lbfgs": "L-BFGS with backtracking, logistic regression 1000x50, 20 iterations",
    "W10.grad": "MAML of second order, MLP 1-40-40-1, 5 tasks: loss and gradients",
    "W10.train": "the same: loss, gradients, update",
    "W11.infer": "transformer block, 256 units, 4 heads, 8 sequences of 128: inference",
    "W11.grad": "the same: loss and gradients",
    "W11.train": "the same: loss, gradients, update",
    "W12.call": "y = x + 1 on four elements, per call",
}
RATE, RATE_OF_CNN, RATE_OF_MAML = 0.01, 0.001, 0.001
TOLERANCE = 1e-5                                    # where the Newton iteration of W7 ends
SECOND_NORM = 1e-3                                  # the weight of the regularisation in W9
LONGEST = 20                                        # steps of the beam search of W8
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))    # channels and stride of ResNet-18; two blocks each
SMALL_STAGES = ((4, 1), (6, 2))


def arrays(cell, small=False):
    """The arrays of the cell's workload by name, always the same ones; ``small``: in sizes for tests."""
    name, variant = cell.split(".")
    make = {"W5": resnet if variant.startswith("res") else vgg}.get(name) or MAKERS[name]
    return make(np.random.RandomState(int(name[1:])), small)


def mlp(r, batch, *sizes):
    made = {}
    for i, (n_in, n_out) in enumerate(zip(sizes, sizes[1:])):
        linear(r, made, f"l{i + 1}", n_out, n_in)
    return {**made, "x": uniform(r, 0, 1, batch, sizes[0]), "t": integers(r, sizes[-1], batch)}


def rnn(r, small):
    steps, batch, units = (6, 3, 5) if small else (64, 32, 256)
    made = {}
    linear(r, made, "wx", units, units)
    linear(r, made, "wh", units, units, bias=False, gain=0.9)
    linear(r, made, "out", 10, units)
    made["x"] = normal(r, steps, batch, units)
    made["lengths"] = r.randint(steps // 4, steps + 1, batch).astype(np.int32)
    made["lengths"][-1] = steps
    made["t"] = integers(r, 10, batch)
    longest = np.array([64, 41, 57, 48, 62, 44, 53, 60]) * steps // 64
    made["varlen"] = np.stack([np.minimum(r.randint(steps // 4, steps + 1, batch), m) for m in longest])
    made["varlen"][:, 0] = longest
    made["varlen"] = made["varlen"].astype(np.int32)
    return made


def language_model(r, words, units, steps, batch):
    made = {"embed.W": normal(r, words, units) * np.float32(0.5)}
    for layer in ("l1", "l2"):
        linear(r, made, layer + ".x", 4 * units, units)
        linear(r, made, layer + ".h", 4 * units, units, bias=False)
    linear(r, made, "l3", words, units)
    return {**made, "x": integers(r, words, steps, batch), "t": integers(r, words, steps, batch)}


def vgg(r, small):
    width, size, batch = (2, 8, 2) if small else (64, 32, 32)
    made = {}
    for name, n_out, n_in in (("c1", width, 3), ("c2", width, width), ("c3", 2 * width, width), ("c4", 2 * width, 2 * width)):
        convolution(r, made, name, n_out, n_in, 3)
    linear(r, made, "f1", 4 * width, 2 * width * (size // 4) ** 2)
    linear(r, made, "f2", 10, 4 * width)
    return {**made, "x": normal(r, batch, 3, size, size), "t": integers(r, 10, batch)}


def resnet(r, small):
    stages = SMALL_STAGES if small else STAGES
    before, made = stages[0][0], {}
    convolution(r, made, "stem", before, 3, 3)
    for name, n_in, n_out, _ in residual_blocks(stages):
        convolution(r, made, name + ".c1", n_out, n_in, 3)
        convolution(r, made, name + ".c2", n_out, n_out, 3)
        if n_in != n_out:
            convolution(r, made, name + ".sc", n_out, n_in, 1)
    linear(r, made, "fc", 10, stages[-1][0])
    return {**made, "x": normal(r, *((2, 3, 8, 8) if small else (32, 3, 32, 32)))}


def residual_blocks(stages):
    """(name, channels in, channels out, stride) of every block."""
    before = stages[0][0]
    for s, (channels, stride) in enumerate(stages):
        for b in range(2):
            yield f"s{s}b{b}", before, channels, stride if b == 0 else 1
            before = channels


def stages_of(data):
    """The stages of the ResNet that has these weights."""
    return SMALL_STAGES if "s2b0.c1.W" not in data else STAGES


def gelu_norm(r, small):
    n, units = (6, 8) if small else (4096, 1024)
    return {"x": normal(r, n, units), "w": 1 + normal(r, units) * np.float32(0.1), "b": normal(r, units) * np.float32(0.1),
            "gamma": 1 + normal(r, units) * np.float32(0.1), "beta": np.float32(0.5) + normal(r, units) * np.float32(0.1)}


def newton(r, small):
    n = 8 if small else 64
    return {"a": uniform(r, 0.5, 1.5, n), "b": 3 * normal(r, n), "x": 2 * normal(r, n), "c": normal(r, n)}


def decoder(r, small):
    words, units = (20, 6) if small else (500, 128)
    made = {"embed.W": normal(r, words, units)}
    for name in ("W_r", "W_z", "W", "U_r", "U_z", "U"):
        linear(r, made, "gru." + name, units, units)
    linear(r, made, "out", words, units, gain=2.0)
    made["out.b"][0] = 1.6                          # the end of the sentence
    return {**made, "x": normal(r, 1, units)}


def logistic(r, small):
    n, units = (40, 5) if small else (1000, 50)
    scale = np.logspace(0, 0.8, units)
    x = r.randn(n, units) * scale
    t = np.where(x @ (r.randn(units) / scale) + 0.5 * r.randn(n) > 0, 1, -1)
    return {"x": x.astype(np.float32), "t": t.astype(np.float32)}


def iterations_of(x):
    """How many iterations of L-BFGS are measured on that many examples."""
    return 20 if len(x) == 1000 else 4


def sine_tasks(r, small):
    tasks, shots, units = (2, 3, 4) if small else (5, 10, 40)
    made = {}
    for i, (n_out, n_in) in enumerate(((units, 1), (units, units), (1, units))):
        linear(r, made, f"l{i + 1}", n_out, n_in)
    amplitude, phase = r.uniform(0.1, 5, (tasks, 1, 1)), r.uniform(0, math.pi, (tasks, 1, 1))
    for s in ("s", "q"):                            # support and query
        x = r.uniform(-5, 5, (tasks, shots, 1))
        made["x" + s], made["y" + s] = x.astype(np.float32), (amplitude * np.sin(x + phase)).astype(np.float32)
    return made


def transformer(r, small):
    units, steps, batch = (8, 3, 2) if small else (256, 128, 8)
    made = {}
    for name in ("q", "k", "v", "o"):
        linear(r, made, name, units, units)
    linear(r, made, "f1", 4 * units, units)
    linear(r, made, "f2", units, 4 * units)
    for name in ("ln1", "ln2"):
        made[name + ".gamma"] = 1 + normal(r, units) * np.float32(0.1)
        made[name + ".beta"] = normal(r, units) * np.float32(0.1)
    return {**made, "x": normal(r, batch, steps, units), "t": normal(r, batch, steps, units)}


MAKERS = {
    "W1": lambda r, small: mlp(r, *((3, 6, 5, 5, 4) if small else (100, 784, 1000, 1000, 10))),
    "W2": lambda r, small: mlp(r, *((2, 3, 4, 4, 2) if small else (8, 16, 64, 64, 4))),
    "W3": rnn, "W4": lambda r, small: language_model(r, *((7, 4, 3, 2) if small else (1000, 200, 35, 20))), "W6": gelu_norm,
    "W7": newton, "W8": decoder, "W9": logistic, "W10": sine_tasks,
    "W11": transformer, "W12": lambda r, small: {"x": np.arange(4, dtype=np.float32)},
}


def normal(r, *shape):
    return r.randn(*shape).astype(np.float32)


def uniform(r, low, high, *shape):
    return r.uniform(low, high, shape).astype(np.float32)


def integers(r, high, *shape):
    return r.randint(0, high, shape).astype(np.int32)


def linear(r, made, name, n_out, n_in, bias=True, gain=1.0):
    made[name + ".W"] = (gain / math.sqrt(n_in) * r.randn(n_out, n_in)).astype(np.float32)
    if bias:
        made[name + ".b"] = (0.01 * r.randn(n_out)).astype(np.float32)


def convolution(r, made, name, n_out, n_in, size):
    """The weights of a convolution and of the batch normalisation after it."""
    made[name + ".W"] = (math.sqrt(2 / (n_in * size * size)) * r.randn(n_out, n_in, size, size)).astype(np.float32)
    made[name + ".gamma"] = 1 + normal(r, n_out) * np.float32(0.1)
    made[name + ".beta"] = normal(r, n_out) * np.float32(0.1)
    made[name + ".mean"] = normal(r, n_out) * np.float32(0.1)
    made[name + ".var"] = 1 + uniform(r, 0, 0.2, n_out)
