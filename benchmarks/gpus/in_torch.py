"""The cells in PyTorch: eager, and with torch.compile of the model or the model with its loss, with and without CUDA graphs."""
import contextlib
import gc

import torch
import torch.nn.functional as F
from torch import nn

import nets.in_torch as networks
import steps.in_torch as steps
from cases import Cells
from frameworks import in_torch as models

VERSION = models.VERSION
CELLS = Cells()
#: The update is one fused kernel for all parameters in each of them.
MODES = "eager_fused", "compile_fused", "reduce_overhead_fused"
#: Where cases are made: "cuda", or "cpu" to try the program.
device = "cuda"


def begin(where, tf32):
    """Before cases are made: ``where`` they are, and whether products and convolutions may round to TF32."""
    global device
    device = where
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True


def during(mode):
    """The settings of a mode."""
    return contextlib.nullcontext()


def forget():
    """Give the memory of cases that are gone back to the device."""
    torch.compiler.reset()
    gc.collect()
    torch.cuda.empty_cache()


def wait(handle):
    if device != "cpu":
        torch.cuda.synchronize()


def case_of(data, cell, mode, make, loss, inputs=("x", "t")):
    """The case of the model that ``make()`` gives; ``inputs`` are those of the loss, the model itself does without targets."""
    with torch.device(device):
        model, arguments = make(), {name: models.tensor(data[name]) for name in inputs}
    if cell.endswith("infer"):
        arguments.pop("t", None)
        case = models.inference(mode, model.eval(), list(arguments.values()))
    else:
        case = steps.supervised(cell, mode, model, loss, list(arguments.values()))
    return case._replace(wait=wait, checked=min(case.checked, 2))


@CELLS.of("mlp.momentum mlp.infer", *MODES)
def mlp(data, cell, mode):
    def make():
        return models.filled(models.MLP(F.relu, data["x"].shape[1], *data["l1.b"].shape, *data["l3.b"].shape), data)
    return case_of(data, cell, mode, make, models.cross_entropy)


@CELLS.of("lstm.momentum lstm.infer", *MODES)
def language_model(data, cell, mode):
    return case_of(data, cell, mode, lambda: models.LanguageModel(data), models.language_loss)


@CELLS.of("resnet.momentum resnet.infer", *MODES)
def resnet(data, cell, mode):
    return case_of(data, cell, mode, lambda: models.ResNet(data), models.cross_entropy)


@CELLS.of("gpt.adam gpt.infer", *MODES)
def gpt(data, cell, mode):
    return case_of(data, cell, mode, lambda: networks.gpt_of(data), models.language_loss)


class Block(nn.Module):
    def __init__(self, n_in, units):
        super().__init__()
        self.l, self.ln = nn.Linear(n_in, units), nn.LayerNorm(units)

    def forward(self, x):
        return F.gelu(self.ln(self.l(x)))


class VAE(nn.Module):
    def __init__(self, n_in, units, latent):
        super().__init__()
        self.e1, self.e2 = Block(n_in, units), Block(units, units)
        self.mean, self.ln_var = nn.Linear(units, latent), nn.Linear(units, latent)
        self.d1, self.d2, self.out = Block(latent, units), Block(units, units), nn.Linear(units, n_in)

    def encode(self, x):
        h = self.e2(self.e1(x))
        return self.mean(h), self.ln_var(h)

    def decode(self, z):
        return self.out(self.d2(self.d1(z)))

    def forward(self, x, noise):
        mean, ln_var = self.encode(x)
        return self.decode(mean + torch.exp(0.5 * ln_var) * noise)


def vae_loss(model, x, noise):
    mean, ln_var = model.encode(x)
    y = model.decode(mean + torch.exp(0.5 * ln_var) * noise)
    likelihood = F.binary_cross_entropy_with_logits(y, x, reduction="sum")
    return (likelihood + 0.5 * (mean * mean + torch.exp(ln_var) - ln_var - 1).sum()) / len(x)


@CELLS.of("vae.adam vae.infer", *MODES)
def vae(data, cell, mode):
    def make():
        model = VAE(data["x"].shape[1], len(data["e1.l.b"]), len(data["mean.b"]))
        names = {".ln.W": ".ln.gamma", ".ln.b": ".ln.beta"}
        return models.filled(model, {**data, **{layer + ours: data[layer + theirs] for layer in ("e1", "e2", "d1", "d2")
                                                for ours, theirs in names.items()}})
    return case_of(data, cell, mode, make, vae_loss, ("x", "noise"))
