"""Reads handwritten digits row by row, and stops as soon as it is sure of what it reads.

    python examples/digits/read_rows.py [--epochs 30] [--quick]

A recurrent network takes one of the eight rows of pixels after the other.  After each it has an opinion on every
image; an image whose best class has a probability above ``sure`` keeps the opinion it has, and the `while` ends once
there is no other image in the batch.  How many rows are read depends on the pixels and on the weights, and the loop,
its test included, is part of the compiled program; so is its gradient.

The same model is trained eagerly and compiled from equal seeds, and both are shown.
"""
import argparse
import time

from dy2static import to_static
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from sklearn.datasets import load_digits


class Reader(chainer.Chain):
    """A recurrent network over rows of pixels; ``sure`` is the probability at which an image needs no more rows."""

    def __init__(self, n_units=64, n_out=10, sure=0.9):
        super().__init__()
        self.n_units, self.sure = n_units, sure
        with self.init_scope():
            self.row = L.Linear(8, n_units)
            self.state = L.Linear(n_units, n_units, nobias=True)
            self.opinion = L.Linear(n_units, n_out)

    def forward(self, x):
        """(the opinion that each image stopped with: (N, 10) float, the rows it took: (N,) float).

        x: (N, 8, 8) float
        """
        n = x.shape[0]
        h = F.tanh(self.row(x[:, 0]))
        y = self.opinion(h)
        unsure = F.softmax(y).array.max(axis=1) < self.sure
        rows = np.ones(n, np.float32)
        i = 1
        while i < 8 and unsure.any():
            h = F.tanh(self.row(x[:, i]) + self.state(h))
            y = F.where(F.broadcast_to(unsure[:, None], y.shape), self.opinion(h), y)
            rows = rows + unsure
            unsure = np.logical_and(unsure, F.softmax(y).array.max(axis=1) < self.sure)
            i += 1
        return y, rows


class Loss(chainer.Chain):
    """The loss of a Reader, as one function to be compiled."""

    def __init__(self, reader):
        super().__init__()
        with self.init_scope():
            self.reader = reader

    def forward(self, x, t):
        y, rows = self.reader(x)
        return F.softmax_cross_entropy(y, t), rows


def digits():
    """((images: (N, 8, 8) float32 in [0, 1], labels: (N,) int32) to learn from, the same to test with)."""
    bunch = load_digits()
    x, t = (bunch.images / 16).astype(np.float32), bunch.target.astype(np.int32)
    order = np.random.RandomState(0).permutation(len(x))
    return (x[order[:1440]], t[order[:1440]]), (x[order[1440:]], t[order[1440:]])


def test(loss, x, t):
    """(the share of images that are read right, the mean number of rows that it took)."""
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        y, rows = loss.reader(x)
    return float((y.array.argmax(axis=1) == t).mean()), float(rows.mean())


def train(compiled, epochs, batchsize):
    """The model, (loss, accuracy, rows) of every epoch, and the seconds that training took."""
    np.random.seed(0)
    model = Loss(Reader())
    if compiled:
        to_static(model, strict=True)
    optimizer = chainer.optimizers.Adam(alpha=0.003).setup(model)
    (x, t), tests = digits()
    log, seconds = [], 0
    for _ in range(epochs):
        started, losses = time.perf_counter(), []
        for i in np.split(np.random.permutation(len(x)), len(x) // batchsize):
            loss, _ = model(x[i], t[i])
            model.cleargrads()
            loss.backward()
            optimizer.update()
            losses.append(float(loss.array))
        seconds += time.perf_counter() - started
        log.append((sum(losses) / len(losses), *test(model, *tests)))
    return model, log, seconds


def main():
    """Train eagerly and compiled, compare, and show what became of the loop."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batchsize", type=int, default=32, help="a divisor of 1440")
    parser.add_argument("--quick", action="store_true", help="six epochs")
    options = parser.parse_args()
    epochs = 6 if options.quick else options.epochs
    (_, eager, slow), (model, compiled, fast) = [train(c, epochs, options.batchsize) for c in (False, True)]
    print(f"  {'':7}{'training loss':^22}{'test accuracy':^22}{'rows read, of 8':^20}")
    print(f"  {'epoch':<7}" + f"{'eager':>10}{'compiled':>10}  " * 3)
    for epoch in sorted({1, 2, 5, 10, 20, epochs} & set(range(1, epochs + 1))):
        print(f"  {epoch:<7}" + "".join(f"{a:>10.4f}{b:>10.4f}  " for a, b in zip(eager[epoch - 1], compiled[epoch - 1])))
    apart = np.abs(np.array(eager) - np.array(compiled)).max()
    print(f"largest difference in any epoch: {apart:.1e}")
    print(f"training: eager {slow:.2f} s, compiled {fast:.2f} s, {slow / fast:.1f} times as fast")
    print(f"test accuracy {compiled[-1][1]:.3f} with {compiled[-1][2]:.2f} rows")
    print(model.forward.cache_info())


if __name__ == "__main__":
    main()
