"""Trains a model of handwritten digits, saves it, and goes on without its class: predicts, learns more, is saved again.

    python examples/digits/saved.py [--epochs 10] [--quick]

The digits come with scikit-learn.  The first half of the work is done on upright images; what is loaded is then trained on
images that are shifted by a pixel, of which the first model knows nothing.
"""
import argparse
import pathlib
import tempfile
import time

import dy2static
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from sklearn.datasets import load_digits


class Convolutional(chainer.Chain):
    """Two convolutions with batch normalisation; a second look at images that the first one is unsure of."""

    def __init__(self, channels=16):
        super().__init__()
        with self.init_scope():
            self.conv1, self.conv2 = L.Convolution2D(1, channels, 3, pad=1), L.Convolution2D(channels, channels, 3, pad=1)
            self.norm = L.BatchNormalization(channels)
            self.answer = L.Linear(channels * 16, 10)

    def forward(self, images):
        """(N, 10) logits.  images: (N, 1, 8, 8) float32"""
        h = F.relu(self.norm(self.conv1(images)))
        looks = 0
        while looks < 2 and F.average(F.max(F.softmax(self.answer(F.max_pooling_2d(h, 2))), axis=1)).array < 0.9:
            h = h + F.relu(self.conv2(h))
            looks += 1
        return self.answer(F.max_pooling_2d(h, 2))


def digits():
    """((images, labels) to train, the same to test)."""
    bunch = load_digits()
    images, labels = (bunch.images[:, None] / 16).astype(np.float32), bunch.target.astype(np.int32)
    return (images[:1440], labels[:1440]), (images[1440:], labels[1440:])


def train(model, images, labels, epochs, batchsize=32):
    """Adam on the whole model; gives the mean loss of the last epoch."""
    optimizer = chainer.optimizers.Adam().setup(model)
    for _ in range(epochs):
        losses = []
        for batch in np.array_split(np.random.permutation(len(images)), len(images) // batchsize):
            loss = F.softmax_cross_entropy(model(images[batch]), labels[batch])
            model.cleargrads()
            loss.backward()
            optimizer.update()
            losses.append(float(loss.array))
    return np.mean(losses)


def accuracy(model, images, labels):
    """The share of images that the model names rightly, ten at a time."""
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        parts = np.array_split(np.arange(len(images)), len(images) // 10)
        return np.mean(np.concatenate([model(images[k]).array.argmax(axis=1) == labels[k] for k in parts]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="two epochs each")
    given = parser.parse_args()
    epochs = 2 if given.quick else given.epochs
    np.random.seed(0)
    (images, labels), (test_images, test_labels) = digits()
    shifted, test_shifted = np.roll(images, 1, axis=3), np.roll(test_images, 1, axis=3)

    model = dy2static.to_static(Convolutional())
    train(model, images, labels, epochs)
    print(f"trained: {accuracy(model, test_images, test_labels):.4f} upright, "
          f"{accuracy(model, test_shifted, test_labels):.4f} shifted")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "digits"
        start = time.perf_counter()
        dy2static.save(model, path, [dy2static.InputSpec([None, 1, 8, 8], "float32", "images")])
        saved = time.perf_counter()
        loaded = dy2static.load(path)
        print(f"saved in {saved - start:.2f} s, loaded in {time.perf_counter() - saved:.2f} s, "
              f"{sum(file.stat().st_size for file in path.iterdir()) / 1000:.0f} kB")
        print(f"loaded: {accuracy(loaded, test_images, test_labels):.4f} upright, a {type(loaded).__name__}")

        train(loaded, np.concatenate([images, shifted]), np.concatenate([labels, labels]), epochs)
        dy2static.save(loaded, path)
        again = dy2static.load(path)
    print(f"trained on: {accuracy(again, test_images, test_labels):.4f} upright, "
          f"{accuracy(again, test_shifted, test_labels):.4f} shifted")
    print(f"programs in use: {again.function.cache_info().programs}")


if __name__ == "__main__":
    main()
