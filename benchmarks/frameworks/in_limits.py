"""What no framework can do without: the matrix products and convolutions of a workload alone, into memory at hand.

Products that can be done for all time steps at once are (input projections, gradients of weights), so this is a floor,
not a plan.  For W6 it is the memory that has to move.  A framework with better kernels than these can be below.
"""
import os

import numpy as np
import torch

from cases import Case, Cells
from workloads import STAGES, residual_blocks

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
VERSION = f"PyTorch {torch.__version__}"
CELLS = Cells()
MODES = "blas", "onednn", "numpy"
RANDOM = np.random.RandomState(0)
BATCH, IMAGE = 32, 32


def linear(n, n_in, n_out, training=False, first=False):
    """The products of a linear layer as (m, k, n, left is transposed, right is); the first layer's inputs need no gradient."""
    products = [(n, n_in, n_out, False, True)]
    if training:
        products.append((n_out, n, n_in, True, False))
        if not first:
            products.append((n, n_out, n_in, False, False))
    return products


def mlp(n, sizes, training):
    layers = enumerate(zip(sizes, sizes[1:]))
    return [product for i, (n_in, n_out) in layers for product in linear(n, n_in, n_out, training, i == 0)]


def rnn(training):
    steps = 64 * [(32, 256, 256, False, True)]
    back = 64 * [(32, 256, 256, False, False)] + [(256, 2048, 256, True, False)]
    return linear(2048, 256, 256, training, True) + steps + linear(32, 256, 10, training) + (back if training else [])


def language_model(training):
    steps = 35 * [(20, 200, 800, False, True)]
    back = 35 * [(20, 800, 200, False, False)] + [(800, 700, 200, True, False)]
    return 2 * (linear(700, 200, 800, training) + steps + (back if training else [])) + linear(700, 200, 1000, training)


def transformer(training):
    heads = 32 * (3 if training else 1) * [(128, 64, 128, False, True), (128, 128, 64, False, False)]
    return 4 * linear(1024, 256, 256, training) + linear(1024, 256, 1024, training) + linear(1024, 1024, 256, training) + heads


def products_of(cell):
    """All products of a cell without convolutions."""
    name, training = cell.split(".")[0], cell.endswith((".grad", ".train"))
    return {
        "W1": lambda: mlp(100, (784, 1000, 1000, 10), training),
        "W2": lambda: mlp(8, (16, 64, 64, 4), training),
        "W3": lambda: rnn(training),
        "W4": lambda: language_model(training),
        "W5": lambda: linear(BATCH, 8192, 256, training) + linear(BATCH, 256, 10, training),
        "W8": lambda: 17 * (linear(4, 128, 384) + linear(4, 128, 256) + linear(4, 128, 128) + linear(4, 128, 500)),
        "W9": lambda: 41 * [(1000, 50, 1, False, False)] + 21 * [(50, 1000, 1, True, False)],
        "W10": lambda: 5 * 3 * mlp(10, (1, 40, 40, 1), True),
        "W11": lambda: transformer(training),
    }[name]()


def runner(products, mode):
    """A function that computes all of the products."""
    made = {}
    for m, k, n, left, right in products:
        a = RANDOM.randn(*((k, m) if left else (m, k))).astype(np.float32)
        b = RANDOM.randn(*((n, k) if right else (k, n))).astype(np.float32)
        a, b = a.T if left else a, b.T if right else b
        if mode == "onednn":                        # wants the right factor as a weight (n, k)
            made[m, k, n, left, right] = torch.from_numpy(np.ascontiguousarray(a)), torch.from_numpy(np.ascontiguousarray(b.T))
        elif mode == "blas":
            made[m, k, n, left, right] = torch.from_numpy(a), torch.from_numpy(b), torch.empty(m, n)
        else:
            made[m, k, n, left, right] = a, b, np.empty((m, n), np.float32)
    arrays = [made[product] for product in products]

    def run():
        with torch.inference_mode():
            for found in arrays:
                if mode == "onednn":
                    torch.ops.mkldnn._linear_pointwise(*found, None, "none", [], "")
                elif mode == "blas":
                    torch.mm(found[0], found[1], out=found[2])
                else:
                    np.dot(found[0], found[1], out=found[2])
    return run


@CELLS.of("W1.infer W1.grad W1.train W2.infer W2.grad W2.train W3.infer W3.grad W3.train W4.infer W4.grad W4.train W8.infer "
          "W9.lbfgs W10.grad W10.train W11.infer W11.grad W11.train", *MODES)
def products_alone(data, cell, mode):
    return Case(runner(products_of(cell), mode), lambda handle: [])


VGG = [(3, 64, 32, 3, 1), (64, 64, 32, 3, 1), (64, 128, 16, 3, 1), (128, 128, 16, 3, 1)]


def convolutions_of_resnet():
    """(channels in, channels out, height and width, size, stride) of every convolution."""
    found, size = [(3, STAGES[0][0], IMAGE, 3, 1)], IMAGE
    for _, n_in, n_out, stride in residual_blocks(STAGES):
        found.append((n_in, n_out, size, 3, stride))
        if n_in != n_out:
            found.append((n_in, n_out, size, 1, stride))
        size //= stride
        found.append((n_out, n_out, size, 3, 1))
    return found


@CELLS.of("W5.infer W5.grad W5.train W5.res1 W5.res32", "onednn")
def convolutions_alone(data, cell, mode):
    training = cell in ("W5.grad", "W5.train")
    residual = cell.startswith("W5.res")
    arrays = []
    for i, (n_in, n_out, size, kernel, stride) in enumerate(convolutions_of_resnet() if residual else VGG):
        x, weights = torch.randn(1 if cell == "W5.res1" else BATCH, n_in, size, size), torch.randn(n_out, n_in, kernel, kernel)
        y = torch.nn.functional.conv2d(x, weights, None, stride, kernel // 2)
        arrays.append((x, weights, torch.randn_like(y), stride, kernel // 2, i > 0))
    products = (lambda: None) if residual else runner(products_of(cell), mode)

    def run():
        with torch.inference_mode():
            for x, weights, gradient, stride, pad, with_inputs in arrays:
                torch.nn.functional.conv2d(x, weights, None, stride, pad)
                if training:
                    torch.ops.aten.convolution_backward(gradient, x, weights, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0],
                                                        1, [with_inputs, True, False])
        products()
    return Case(run, lambda handle: [])


@CELLS.of("W6.infer W6.grad", "blas", "numpy")
def memory_alone(data, cell, mode):
    """Reads x once, or twice and writes its gradient."""
    arrays = [np.ones_like(data["x"]) for _ in range(3)]
    if mode == "blas":
        arrays = [torch.from_numpy(array) for array in arrays]
        copy = lambda: arrays[2].copy_(arrays[1])
    else:
        copy = lambda: np.copyto(arrays[2], arrays[1])

    def run():
        arrays[0].max()
        if cell == "W6.grad":
            copy()
    return Case(run, lambda handle: [])
