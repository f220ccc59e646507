"""The cells as Chainer programs on CuPy arrays: eager, compiled whole (also without CUDA graphs), and with the loss compiled."""
import contextlib
import gc

import dy2static
import chainer
import chainer.functions as F
import chainer.links as L
from chainer import Chain
from chainer.backends import cuda
from dy2static import config

import nets.in_chainer as networks
import steps.in_chainer as steps
from cases import Cells
from frameworks import in_chainer as models

VERSION = f"{models.VERSION}, CuPy {cuda.cupy.__version__}"
CELLS = Cells()
#: What `steps.in_chainer` makes of each mode.
WAYS = {"eager": "eager", "whole": "whole", "without_graphs": "whole", "model": "model"}
INFERENCE = "eager", "whole", "without_graphs"


def begin(where, tf32):
    """Before cases are made: let cuDNN's algorithms be measured.  CuPy has read from the environment whether products may round."""
    cuda.Device(0).use()
    chainer.global_config.autotune = True


@contextlib.contextmanager
def during(mode):
    """The settings of a mode, while its case is made and while it runs: Chainer alone is Chainer's methods alone."""
    if mode == "eager":
        dy2static.enable_to_static(False)
    try:
        with config.GPU_GRAPHS.set(int(mode != "without_graphs")):
            yield
    finally:
        dy2static.enable_to_static(True)


def forget():
    """Give the memory of cases that are gone back to the device."""
    gc.collect()
    cuda.cupy.get_default_memory_pool().free_all_blocks()


def wait(handle):
    cuda.cupy.cuda.Device().synchronize()


def train(cell, mode, model, loss, arguments):
    model.to_device("@cupy:0")
    return steps.supervised(cell, WAYS[mode], model, loss, sent(arguments))._replace(wait=wait, checked=2)


def infer(mode, model, arguments, check=models.digest):
    model.to_device("@cupy:0")
    case = networks.infer("eager" if mode == "eager" else "dy2static", model, *sent(arguments))
    return case._replace(check=check, wait=wait)


def sent(arrays):
    return [cuda.to_gpu(array, 0) for array in arrays]


def case_of(data, cell, mode, model, loss, inputs=("x", "t"), check=models.digest):
    """The case of a model; ``inputs`` are those of the loss, the model itself does without targets."""
    if cell.endswith("infer"):
        return infer(mode, model, [data[name] for name in inputs if name != "t"], check)
    return train(cell, mode, model, loss, [data[name] for name in inputs])


@CELLS.of("mlp.momentum", *WAYS)
@CELLS.of("mlp.infer", *INFERENCE)
def mlp(data, cell, mode):
    return case_of(data, cell, mode, models.mlp_of(data, F.relu), models.cross_entropy)


@CELLS.of("lstm.momentum", *WAYS)
@CELLS.of("lstm.infer", *INFERENCE)
def language_model(data, cell, mode):
    return case_of(data, cell, mode, models.language_model_of(data), models.language_loss,
                   check=lambda ys: models.digest(F.stack(ys)))


@CELLS.of("resnet.momentum", *WAYS)
@CELLS.of("resnet.infer", *INFERENCE)
def resnet(data, cell, mode):
    return case_of(data, cell, mode, models.resnet_of(data), models.cross_entropy)


@CELLS.of("gpt.adam", *WAYS)
@CELLS.of("gpt.infer", *INFERENCE)
def gpt(data, cell, mode):
    model = networks.GPT(data["words"], data["units"], data["layers"], data["heads"], data["x"].shape[1])
    return case_of({**data, "t": data["t"].ravel()}, cell, mode, networks.filled(model), models.cross_entropy)


class Block(Chain):
    def __init__(self, n_in, units):
        super().__init__()
        with self.init_scope():
            self.l, self.ln = L.Linear(n_in, units), L.LayerNormalization(units, eps=1e-5)

    def forward(self, x):
        return networks.gelu(self.ln(self.l(x)))


class VAE(Chain):
    def __init__(self, n_in, units, latent):
        super().__init__()
        with self.init_scope():
            self.e1, self.e2 = Block(n_in, units), Block(units, units)
            self.mean, self.ln_var = L.Linear(units, latent), L.Linear(units, latent)
            self.d1, self.d2, self.out = Block(latent, units), Block(units, units), L.Linear(units, n_in)

    def encode(self, x):
        h = self.e2(self.e1(x))
        return self.mean(h), self.ln_var(h)

    def decode(self, z):
        return self.out(self.d2(self.d1(z)))

    def forward(self, x, noise):
        mean, ln_var = self.encode(x)
        return self.decode(mean + F.exp(0.5 * ln_var) * noise)


def vae_loss(model, x, noise):
    mean, ln_var = model.encode(x)
    y = model.decode(mean + F.exp(0.5 * ln_var) * noise)
    return (F.bernoulli_nll(x, y) + F.gaussian_kl_divergence(mean, ln_var)) / len(x)


@CELLS.of("vae.adam", *WAYS)
@CELLS.of("vae.infer", *INFERENCE)
def vae(data, cell, mode):
    model = models.filled(VAE(data["x"].shape[1], len(data["e1.l.b"]), len(data["mean.b"])), data)
    return case_of(data, cell, mode, model, vae_loss, ("x", "noise"))
