"""Trains a convolutional network with batch normalisation and dropout on handwritten digits, in a loop of its own.

    python examples/digits/cnn.py [--epochs 5] [--dtype float64] [--quick]

The network and its loss are one compiled function.  In training it draws the masks of dropout from NumPy's generator
and moves the running statistics of batch normalisation, as eagerly; under ``train=False`` another program of the same
function uses them.  The model is trained eagerly and compiled from equal seeds, and both are shown: losses, accuracy,
running statistics, and the random numbers that were drawn.  In double precision they agree to the last digits; in single
precision training scales the differences of rounding up.
"""
import argparse
import time

from dy2static import to_static
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from sklearn.datasets import load_digits


class Block(chainer.Chain):
    """A convolution, batch normalisation, ReLU."""

    def __init__(self, n_in, n_out):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(n_in, n_out, ksize=3, pad=1, nobias=True)
            self.bn = L.BatchNormalization(n_out)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class CNN(chainer.Chain):
    """Two blocks with pooling, dropout, a classifier."""

    def __init__(self, n_units=8, n_out=10):
        super().__init__()
        with self.init_scope():
            self.first = Block(1, n_units)
            self.second = Block(n_units, 2 * n_units)
            self.out = L.Linear(8 * n_units, n_out)

    def forward(self, x):
        """The opinion on every image: (N, 10) float.  x: (N, 1, 8, 8) float"""
        h = F.max_pooling_2d(self.first(x), 2)
        h = F.max_pooling_2d(self.second(h), 2)
        return self.out(F.dropout(h, 0.3))


class Loss(chainer.Chain):
    """The loss and the accuracy of a model, as one function to be compiled."""

    def __init__(self, model):
        super().__init__()
        with self.init_scope():
            self.model = model

    def forward(self, x, t):
        y = self.model(x)
        return F.softmax_cross_entropy(y, t), F.accuracy(y, t)


def digits():
    """((images: (N, 1, 8, 8) float in [0, 1], labels: (N,) int32) to learn from, the same to test with)."""
    bunch = load_digits()
    x, t = (bunch.images[:, None] / 16).astype(chainer.get_dtype()), bunch.target.astype(np.int32)
    order = np.random.RandomState(0).permutation(len(x))
    return (x[order[:1440]], t[order[:1440]]), (x[order[1440:]], t[order[1440:]])


def train(compiled, epochs, batchsize):
    """The model, (training loss, test loss, test accuracy) of every epoch, a random number, and the seconds."""
    np.random.seed(0)
    model = Loss(CNN())
    if compiled:
        to_static(model, strict=True)
    optimizer = chainer.optimizers.Adam(alpha=0.003).setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(1e-4))
    (x, t), (test_x, test_t) = digits()
    log, started = [], time.perf_counter()
    for _ in range(epochs):
        losses = []
        for i in np.split(np.random.permutation(len(x)), len(x) // batchsize):
            loss, _ = model(x[i], t[i])
            model.cleargrads()
            loss.backward()
            optimizer.update()
            losses.append(float(loss.array))
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            loss, accuracy = model(test_x, test_t)
        log.append((sum(losses) / len(losses), float(loss.array), float(accuracy.array)))
    return model, log, np.random.rand(), time.perf_counter() - started


def statistics_of(model):
    """All running statistics in one vector."""
    blocks = model.model.first, model.model.second
    return np.concatenate([array for block in blocks for array in (block.bn.avg_mean, block.bn.avg_var)])


def main():
    """Train eagerly and compiled, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batchsize", type=int, default=32, help="a divisor of 1440")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--quick", action="store_true", help="two epochs")
    options = parser.parse_args()
    chainer.global_config.dtype = np.dtype(options.dtype)
    epochs = 2 if options.quick else options.epochs
    (one, eager, drawn, slow), (model, compiled, drawn_too, fast) = [
        train(c, epochs, options.batchsize) for c in (False, True)]
    print(f"  {'':7}{'training loss':^22}{'test loss':^22}{'test accuracy':^22}")
    print(f"  {'epoch':<7}" + f"{'eager':>10}{'compiled':>10}  " * 3)
    for epoch, (a, b) in enumerate(zip(eager, compiled), 1):
        print(f"  {epoch:<7}" + "".join(f"{x:>10.4f}{y:>10.4f}  " for x, y in zip(a, b)))
    apart = np.abs(np.array(eager) - np.array(compiled)).max(axis=0)
    print(f"largest difference in any epoch: loss {apart[:2].max():.1e}, accuracy {apart[2]:.1e}")
    print(f"largest difference of running statistics: {np.abs(statistics_of(one) - statistics_of(model)).max():.1e}")
    print(f"the same random numbers were drawn: {drawn == drawn_too}")
    print(f"training and tests: eager {slow:.2f} s, compiled {fast:.2f} s")
    print(f"test accuracy {eager[-1][2]:.3f} eager, {compiled[-1][2]:.3f} compiled")
    print(model.forward.cache_info())


if __name__ == "__main__":
    main()
