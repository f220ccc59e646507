"""What runs on a GPU: the cells, and the weights and inputs that every framework starts from (NumPy only)."""
import numpy as np

import workloads

CELLS = {
    "mlp.momentum": "MLP 784-1000-1000-10, relu, batch 128: a step of MomentumSGD",
    "lstm.momentum": "language model of two LSTM layers, 10,000 words, 650 units, batch 20, 35 steps: a step of MomentumSGD",
    "resnet.momentum": "ResNet-18 (form for CIFAR), 128 images of 32x32: a step of MomentumSGD",
    "gpt.adam": "4 causal transformer layers of 512 units, 8 heads, 8,000 words, 8 sequences of 256: a step of Adam",
    "vae.adam": "VAE 784-256-256-32-256-256-784 with layer normalisation and GELU, batch 4096: a step of Adam",
    "mlp.infer": "the MLP: inference",
    "lstm.infer": "the language model: inference",
    "resnet.infer": "the ResNet: inference",
    "gpt.infer": "the transformer: inference",
    "vae.infer": "the VAE, with its noise: inference",
}


def arrays(cell, small=False):
    """Weights and inputs by name, and sizes of the model, always the same ones; ``small``: in sizes for tests."""
    return MAKERS[cell.split(".")[0]](np.random.RandomState(5), small)


def resnet(r, small):
    made = workloads.resnet(r, small)
    n, side = (2, 8) if small else (128, 32)
    return {**made, "x": workloads.normal(r, n, 3, side, side), "t": workloads.integers(r, 10, n)}


def gpt(r, small):
    """The weights are those of `nets.workloads.weight`."""
    n, length, words, units, layers, heads = (2, 8, 20, 16, 2, 4) if small else (8, 256, 8000, 512, 4, 8)
    return {"x": workloads.integers(r, words, n, length), "t": workloads.integers(r, words, n, length),
            "words": words, "units": units, "layers": layers, "heads": heads}


def vae(r, small):
    n, n_in, units, latent = (3, 12, 8, 2) if small else (4096, 784, 256, 32)
    made = {}
    for name, n_out, n_before in (("e1", units, n_in), ("e2", units, units), ("d1", units, latent), ("d2", units, units)):
        workloads.linear(r, made, name + ".l", n_out, n_before)
        made[name + ".ln.gamma"] = 1 + workloads.normal(r, units) * np.float32(0.1)
        made[name + ".ln.beta"] = workloads.normal(r, units) * np.float32(0.1)
    for name, n_out, n_before in (("mean", latent, units), ("ln_var", latent, units), ("out", n_in, units)):
        workloads.linear(r, made, name, n_out, n_before)
    return {**made, "x": workloads.uniform(r, 0, 1, n, n_in), "noise": workloads.normal(r, n, latent)}


MAKERS = {
    "mlp": lambda r, small: workloads.mlp(r, *((3, 6, 5, 5, 4) if small else (128, 784, 1000, 1000, 10))),
    "lstm": lambda r, small: workloads.language_model(r, *((7, 4, 3, 2) if small else (10_000, 650, 35, 20))),
    "resnet": resnet, "gpt": gpt, "vae": vae,
}
