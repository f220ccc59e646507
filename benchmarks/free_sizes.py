"""What a program for arrays of many sizes costs beside one for their size, and beside eager Chainer.

    python benchmarks/free_sizes.py [--threads 1]

Batches of an MLP and of a small convolutional network, sequences for an LSTM, and images for a U-Net: loss and gradients,
per call.  First a program for each size is measured (``dynamic=False``), then the one for all sizes, both as native code and as
NumPy calls, alternately in one process.
"""
import argparse
import os

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--threads", type=int, default=1)
options = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = str(options.threads)

from dy2static import to_static  # noqa: E402
import chainer  # noqa: E402
import chainer.functions as F  # noqa: E402
import chainer.links as L  # noqa: E402
import numpy as np  # noqa: E402
import timing  # noqa: E402


class MLP(chainer.Chain):
    def __init__(self, n_in, n_units):
        super().__init__()
        with self.init_scope():
            self.l1, self.l2, self.l3 = L.Linear(n_in, n_units), L.Linear(n_units, n_units), L.Linear(n_units, 10)

    def loss(self, x, t):
        return F.softmax_cross_entropy(self.l3(F.relu(self.l2(F.relu(self.l1(x))))), t)


class CNN(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv, self.bn = L.Convolution2D(3, 16, 3, pad=1, nobias=True), L.BatchNormalization(16)
            self.fc = L.Linear(16 * 64, 10)

    def loss(self, x, t):
        h = F.max_pooling_2d(F.relu(self.bn(self.conv(x))), 2)
        return F.softmax_cross_entropy(self.fc(h), t)


class Steps(chainer.Chain):
    """Of one sequence for each sample: as many steps as there are."""

    def __init__(self, units):
        super().__init__()
        with self.init_scope():
            self.lstm, self.fc = L.LSTM(units, units), L.Linear(units, 10)

    def loss(self, x, t):
        self.lstm.reset_state()
        for row in F.separate(x):
            h = self.lstm(row)
        return F.sum(self.fc(h) ** 2)


class UNet(chainer.Chain):
    """Of images whose sides are multiples of four."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a, self.b = L.Convolution2D(3, 16, 3, pad=1), L.Convolution2D(16, 32, 3, pad=1)
            self.c, self.out = L.Convolution2D(32, 32, 3, pad=1), L.Convolution2D(32, 2, 3, pad=1)
            self.up2, self.up1 = L.Deconvolution2D(32, 16, 2, stride=2), L.Deconvolution2D(48, 16, 2, stride=2)

    def loss(self, x, t):
        a = F.relu(self.a(x))
        b = F.relu(self.b(F.max_pooling_2d(a, 2)))
        c = F.relu(self.c(F.max_pooling_2d(b, 2)))
        h = F.concat([F.relu(self.up2(c)), b])
        return F.mean(self.out(F.concat([F.relu(self.up1(h)), a])) ** 2)


def step(model, loss, x, t):
    """One call and its gradients."""
    def run():
        model.cleargrads()
        loss(x, t).backward()
    return run


def candidates(model, shape, size):
    """By name: eager, and programs for one size and for many, on two backends.  shape: of the array for a size."""
    def data(n):
        return np.random.rand(*shape(n)).astype("f"), np.random.randint(0, 10, shape(n)[0]).astype("i")

    found = {"eager": step(model, model.loss, *data(size))}
    for backend in ("numpy", "c"):
        fixed = to_static(model.loss, backend=backend, strict=True, dynamic=False)
        free = to_static(model.loss, backend=backend, strict=True)
        for n in (2, 3, 4):                             # the third size frees the axis
            step(model, free, *data(n))()
        assert free.cache_info().captures == 3
        found[f"{backend}, one size"] = step(model, fixed, *data(size))
        found[f"{backend}, many sizes"] = step(model, free, *data(size))
    return found


print(f"{'':<28}{'eager':>10}{'NumPy: one, many sizes':>30}{'C: one, many sizes':>30}")
MODELS = (("MLP 16-64-64-10", MLP(16, 64), lambda n: (n, 16), 8), ("MLP 784-1000-1000-10", MLP(784, 1000), lambda n: (n, 784), 100),
          ("CNN 16 x 16, batch 32", CNN(), lambda n: (n, 3, 16, 16), 32),
          ("LSTM 64, batch 16, 20 steps", Steps(64), lambda n: (n, 16, 64), 20),
          ("U-Net, batch 4, 96 x 96", UNet(), lambda n: (4, 3, 4 * n, 4 * n), 24))
for title, model, shape, size in MODELS:
    functions = candidates(model, shape, size)
    eager, *rest = timing.seconds_per_call(list(functions.values()), blocks=20)
    pairs = [f"{one * 1e6:9.0f} {many * 1e6:9.0f} ({many / one:.2f})" for one, many in (rest[:2], rest[2:])]
    print(f"{title:<28}{eager * 1e6:>10.0f}{pairs[0]:>30}{pairs[1]:>30}  µs", flush=True)
