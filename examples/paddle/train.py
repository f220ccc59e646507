"""Trains a classifier of handwritten digits and saves it as an inference model, with Paddle's names.

    python examples/paddle/train.py [--epochs 20] [--quick]

The digits come with scikit-learn.  The model thinks as long as it is unsure: a loop on array values, which is part of what is
saved.  `serve.py`, in a process of its own, runs it without this file.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

from dy2static import TracedLayer, to_static
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from sklearn.datasets import load_digits


class Thinker(chainer.Chain):
    """Repeats one layer until it is sure of most images, at most six times."""

    def __init__(self, n_units=64):
        super().__init__()
        with self.init_scope():
            self.look = L.Linear(64, n_units)
            self.think = L.Linear(n_units, n_units)
            self.norm = L.BatchNormalization(n_units)
            self.answer = L.Linear(n_units, 10)

    @to_static
    def forward(self, image, label):
        """(probabilities: (N, 10), loss).  image: (N, 64) float32; label: (N,) int32"""
        h = self.norm(F.relu(self.look(image)))
        y = self.answer(h)
        rounds = 0
        while rounds < 6 and float(F.average(F.max(F.softmax(y), axis=1)).array) < 0.97:
            h = h + F.tanh(self.think(F.dropout(h, 0.1)))
            y = self.answer(h)
            rounds += 1
        return F.softmax(y), F.softmax_cross_entropy(y, label)


def digits():
    """((images, labels) to train, the same to test)."""
    bunch = load_digits()
    images, labels = (bunch.data / 16).astype(np.float32), bunch.target.astype(np.int32)
    return (images[:1440], labels[:1440]), (images[1440:], labels[1440:])


def train(model, images, labels, epochs, batchsize=32):
    """The mean loss of every epoch."""
    optimizer = chainer.optimizers.Adam().setup(model)
    losses = []
    for _ in range(epochs):
        order, total = np.random.permutation(len(images)), 0.0
        for batch in np.split(order, len(images) // batchsize):
            _, loss = model(images[batch], labels[batch])
            model.cleargrads()
            loss.backward()
            optimizer.update()
            total += float(loss.array) * len(batch)
        losses.append(total / len(images))
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="three epochs")
    epochs = 3 if parser.parse_args().quick else parser.parse_args().epochs
    np.random.seed(0)
    (images, labels), (test_images, test_labels) = digits()
    model = Thinker()
    for number, loss in enumerate(train(model, images, labels, epochs), 1):
        print(f"epoch {number}: loss {loss:.4f}")
    print("programs:", len(model.forward.program_cache), model.forward.cache_info())

    with chainer.using_config("train", False):
        (probabilities, _), traced = TracedLayer.trace(model, [test_images, test_labels])
    print("traced:", *traced.program.feed_names, "->", *[target.shape for target in traced.program.fetch_targets], flush=True)
    with tempfile.TemporaryDirectory() as folder:
        saved = pathlib.Path(folder) / "thinker"
        traced.save_inference_model(saved, feed=[0], fetch=[0])         # the labels and the loss stay behind
        serve = pathlib.Path(__file__).with_name("serve.py")
        subprocess.run([sys.executable, str(serve), str(saved), str(saved) + ".npy"], check=True)
        served = np.load(str(saved) + ".npy")
    print(f"accuracy {np.mean(probabilities.array.argmax(axis=1) == test_labels):.4f} here")
    print(f"largest difference between the processes: {abs(served - probabilities.array).max():.1e}")


if __name__ == "__main__":
    main()
