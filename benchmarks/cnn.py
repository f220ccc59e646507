"""Eager against compiled for single convolutions and poolings, and for two small networks of them.

    python benchmarks/cnn.py [--threads 1] [--blocks 20]

Both sides run alternately in one process on equal weights; a ratio above 1 means that compiled is faster.
"""
import argparse
import os

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--threads", type=int, help="threads of the matrix products (default: as NumPy likes)")
parser.add_argument("--blocks", type=int, default=20, help="measurements of each side, of 10 ms or one call")
options = parser.parse_args()
if options.threads:                                 # before NumPy is imported, which reads them once
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(options.threads)

import dy2static  # noqa: E402
import chainer  # noqa: E402
import chainer.functions as F  # noqa: E402
import chainer.links as L  # noqa: E402
import numpy as np  # noqa: E402

from timing import seconds_per_call  # noqa: E402


class One(chainer.Chain):
    """One link, or one function."""

    def __init__(self, made):
        super().__init__()
        with self.init_scope():
            self.made = made

    def forward(self, x):
        return self.made(x)


class LeNet(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.c1, self.c2 = L.Convolution2D(1, 20, 5), L.Convolution2D(20, 50, 5)
            self.l1, self.l2 = L.Linear(800, 500), L.Linear(500, 10)

    def forward(self, x):
        h = F.max_pooling_2d(F.relu(self.c1(x)), 2)
        h = F.max_pooling_2d(F.relu(self.c2(h)), 2)
        return self.l2(F.relu(self.l1(h)))


class Normalised(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.c1, self.b1 = L.Convolution2D(3, 32, 3, pad=1, nobias=True), L.BatchNormalization(32)
            self.c2, self.b2 = L.Convolution2D(32, 64, 3, stride=2, pad=1, nobias=True), L.BatchNormalization(64)
            self.c3, self.fc = L.Convolution2D(64, 64, 1), L.Linear(64, 10)

    def forward(self, x):
        h = F.relu(self.b1(self.c1(x)))
        h = F.relu(self.c3(F.relu(self.b2(self.c2(h)))))
        return self.fc(F.average_pooling_2d(h, h.shape[2:]))


def inference(model, x):
    def run():
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            model(x)
    return run


def training(model, x):
    gy = np.random.rand(*model(x).shape).astype(np.float32)
    x = chainer.Variable(x)

    def run():
        y = model(x)
        y.grad = gy
        x.cleargrad()
        model.cleargrads()
        y.backward()
    return run


MODELS = {
    "3x3, 16 to 16 channels, 32 of 28x28": (lambda: One(L.Convolution2D(16, 16, 3, pad=1)), (32, 16, 28, 28)),
    "3x3, 64 to 64 channels, 8 of 14x14": (lambda: One(L.Convolution2D(64, 64, 3, pad=1)), (8, 64, 14, 14)),
    "1x1, 64 to 64 channels, 16 of 28x28": (lambda: One(L.Convolution2D(64, 64, 1)), (16, 64, 28, 28)),
    "3x3, 32 groups of one, 16 of 14x14": (lambda: One(L.Convolution2D(32, 32, 3, pad=1, groups=32)), (16, 32, 14, 14)),
    "4x4 transposed, stride 2, 16 of 14x14": (lambda: One(L.Deconvolution2D(32, 16, 4, 2, 1)), (16, 32, 14, 14)),
    "maximum of 2x2, 32 of 28x28": (lambda: One(lambda x: F.max_pooling_2d(x, 2)), (32, 16, 28, 28)),
    "average of 3x3, stride 2, 32 of 28x28": (lambda: One(lambda x: F.average_pooling_2d(x, 3, 2)), (32, 16, 28, 28)),
    "LeNet, 64 of 28x28": (LeNet, (64, 1, 28, 28)),
    "with batch normalisation, 16 of 32x32": (Normalised, (16, 3, 32, 32)),
}

print(f"NumPy {np.__version__}, Chainer {chainer.__version__}, dy2static {dy2static.__version__}, "
      f"threads {options.threads or 'by default'}; milliseconds")
for case in (inference, training):
    print(f"\n{case.__name__:<42}{'eager':>10}{'compiled':>10}{'ratio':>8}")
    for what, (make, shape) in MODELS.items():
        functions = []
        for compile in (lambda model: model, dy2static.to_static):
            np.random.seed(0)
            functions.append(case(compile(make()), np.random.rand(*shape).astype(np.float32)))
        eager, compiled = seconds_per_call(functions, options.blocks)
        print(f"  {what:<40}{eager * 1e3:>10.3f}{compiled * 1e3:>10.3f}{eager / compiled:>8.2f}", flush=True)
