"""What is trained: the cells, their hyperparameters, and the weights and inputs that every framework starts from (NumPy only)."""
import numpy as np

import workloads

CELLS = {
    "W2.sgd": "MLP 16-64-64-4, tanh, batch 8: SGD",
    "W2.momentum": "the same: MomentumSGD",
    "W2.adam": "the same: Adam",
    "W4.adam": "language model of two LSTM layers, 1000 words, 200 units, batch 20, 35 steps: Adam",
    "W10.adam": "MAML of second order, MLP 1-40-40-1, 5 tasks, one inner step of SGD: Adam",
    "MAML3.adam": "the same, three inner steps",
    "W11.adam": "transformer block, 256 units, 4 heads, 8 sequences of 128: Adam",
    "P300.adam": "150 residual layers of 16 units, 300 small parameters, batch 8: Adam, the norm of all gradients clipped",
    "DCGAN.adam": "DCGAN, images of 32x32, batch 16: both networks, an Adam with weight decay for each",
}
LAYERS, THRESHOLD = 150, 0.5            # of P300: its layers, and the norm to which gradients are clipped
RATES = {"sgd": 0.01, "momentum": 0.01, "adam": 0.001}
MOMENTUM, EPSILON = 0.9, 1e-8
BETAS = 0.9, 0.999
GAN_RATE, GAN_BETAS, GAN_DECAY = 0.0002, (0.5, 0.999), 0.0001
GAN_WIDTH, GAN_BOTTOM, GAN_HIDDEN, GAN_BATCH = 64, 4, 100, 16


def arrays(cell, small=False):
    """The arrays of the cell by name, always the same ones; ``small``: in sizes for tests."""
    name = cell.split(".")[0]
    if name == "P300":
        return small_parameters(np.random.RandomState(300), 3 if small else LAYERS)
    if name == "DCGAN":
        return gan(np.random.RandomState(7), *((8, 2, 5, 3) if small else (GAN_WIDTH, GAN_BOTTOM, GAN_HIDDEN, GAN_BATCH)))
    return workloads.arrays(("W10" if name == "MAML3" else name) + ".train", small)


def inner_steps(cell):
    """How many steps of SGD each task of MAML takes."""
    return 3 if cell.startswith("MAML3") else 1


def small_parameters(r, layers):
    made = {}
    for i in range(layers):
        workloads.linear(r, made, f"l{i}", 16, 16, gain=0.2)
    return {**made, "x": workloads.normal(r, 8, 16), "t": workloads.normal(r, 8, 16)}


def gan(r, width, bottom, hidden, batch):
    """Weights by the names of Chainer's example; those of deconvolutions are (in, out, height, width)."""
    made = {}

    def weights(name, *shape, out=0):
        made[name + ".W"] = workloads.normal(r, *shape) * np.float32(0.05)
        made[name + ".b"] = np.zeros(shape[out], np.float32)

    def normalisation(name, n, gamma):
        made[name + ".beta"] = np.zeros(n, np.float32)
        if gamma:
            made[name + ".gamma"] = np.ones(n, np.float32)
    weights("gen.l0", bottom * bottom * width, hidden)
    normalisation("gen.bn0", bottom * bottom * width, True)
    for i, (n_in, n_out) in enumerate(((width, width // 2), (width // 2, width // 4), (width // 4, width // 8)), 1):
        weights(f"gen.dc{i}", n_in, n_out, 4, 4, out=1)
        normalisation(f"gen.bn{i}", n_out, True)
    weights("gen.dc4", width // 8, 3, 3, 3, out=1)
    for name, n_in, n_out, size in critic_layers(width):
        weights("dis." + name, n_out, n_in, size, size)
        if name != "c0_0":
            normalisation("dis.bn" + name[1:], n_out, False)
    weights("dis.l4", 1, bottom * bottom * width)
    return {**made, "x": workloads.uniform(r, -1, 1, batch, 3, 8 * bottom, 8 * bottom),
            "z": workloads.uniform(r, -1, 1, batch, hidden, 1, 1)}


def critic_layers(width):
    """(name, channels in, channels out, size of the filter); a size of 4 halves the image."""
    w8, w4, w2 = width // 8, width // 4, width // 2
    return (("c0_0", 3, w8, 3), ("c0_1", w8, w4, 4), ("c1_0", w4, w4, 3), ("c1_1", w4, w2, 4),
            ("c2_0", w2, w2, 3), ("c2_1", w2, width, 4), ("c3_0", width, width, 3))
