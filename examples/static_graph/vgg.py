"""Chainer's CIFAR example of static graphs: a VGG on patches of photographs.

    python examples/static_graph/vgg.py [--iterations 30] [--width 16] [--quick]

Which of scikit-learn's two photographs, a temple and a flower, a patch of 32 x 32 pixels is from; one half of each
photograph is to learn from, the other to test with.  The network is the VGG of Chainer's example, thinner by ``--width``,
with batch normalisation and dropout, and trains with the decorator and without it from the same seed.
"""
import argparse
import time

from dy2static import static_graph
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from sklearn.datasets import load_sample_images


class Block(chainer.Chain):
    """A convolution, batch normalisation, ReLU."""

    def __init__(self, out_channels, ksize=3, pad=1):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(None, out_channels, ksize, pad=pad, nobias=True)
            self.bn = L.BatchNormalization(out_channels)

    def __call__(self, x):
        return F.relu(self.bn(self.conv(x)))


class VGG(chainer.Chain):
    """Blocks of convolutions with dropout between them, pooling after each group, two fully connected layers."""

    def __init__(self, width, n_out):
        super().__init__()
        self.groups = []
        with self.init_scope():
            for group, (times, count) in enumerate(((1, 2), (2, 2), (4, 3))):
                for i in range(count):
                    setattr(self, f"block{group}_{i}", Block(width * times))
                self.groups.append([f"block{group}_{i}" for i in range(count)])
            self.fc1 = L.Linear(None, 4 * width, nobias=True)
            self.bn_fc1 = L.BatchNormalization(4 * width)
            self.fc2 = L.Linear(None, n_out, nobias=True)

    @static_graph(minimize_cache_size=False)
    def __call__(self, x):
        """The opinion on every patch: (N, n_out) float32.  x: (N, 3, 32, 32) float32"""
        h = x
        for group in self.groups:
            for name in group[:-1]:
                h = F.dropout(self[name](h), ratio=0.3)
            h = F.max_pooling_2d(self[group[-1]](h), ksize=2, stride=2)
        h = F.dropout(h, ratio=0.5)
        h = F.dropout(F.relu(self.bn_fc1(self.fc1(h))), ratio=0.5)
        return self.fc2(h)


def patches():
    """Patches to learn from and to test with: ((N, 3, 32, 32) float32, (N,) int32), twice."""
    found = []
    for half in (0, 1):
        images, labels = [], []
        for label, photo in enumerate(load_sample_images().images):
            pixels = (photo[:, half * 320:half * 320 + 320].transpose(2, 0, 1) / 255).astype("f")
            for top in range(0, pixels.shape[1] - 31, 16):
                for left in range(0, 320 - 31, 16):
                    images.append(pixels[:, top:top + 32, left:left + 32])
                    labels.append(label)
        found.append((np.stack(images), np.array(labels, "i")))
    return found


def train(args, use_static_graph):
    """Train; the losses, the accuracy on the test half, and the seconds of an iteration."""
    np.random.seed(0)
    chainer.config.use_static_graph = use_static_graph
    (x, t), (x_test, t_test) = patches()
    model = VGG(args.width, 2)
    optimizer = chainer.optimizers.MomentumSGD(0.02).setup(model)
    losses, seconds = [], []
    for _ in range(args.iterations):
        batch = np.random.permutation(len(x))[:args.batchsize]
        start = time.perf_counter()
        loss = F.softmax_cross_entropy(model(x[batch]), t[batch])
        model.cleargrads()
        loss.backward()
        optimizer.update()
        seconds.append(time.perf_counter() - start)
        losses.append(float(loss.array))
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        some = np.random.RandomState(0).permutation(len(x_test))[:400].reshape(-1, 50)
        rights = [F.accuracy(model(x_test[batch]), t_test[batch]).array for batch in some]
    return losses, float(np.mean(rights)), np.median(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batchsize", type=int, default=32)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--quick", action="store_true", help="a few iterations of a thin network")
    args = parser.parse_args()
    if args.quick:
        args.iterations, args.width, args.batchsize = 6, 4, 16
    written, accuracy_as_written, slow = train(args, False)
    losses, accuracy, fast = train(args, True)
    for number in range(0, args.iterations, 5):
        print(f"iteration {number}: loss {written[number]:.5f} as written, {losses[number]:.5f} with static graphs")
    print(f"test accuracy {accuracy_as_written:.4f} as written, {accuracy:.4f} with static graphs")
    print(f"an iteration: {slow * 1e3:.1f} ms as written, {fast * 1e3:.1f} ms with static graphs: {slow / fast:.2f} times as fast")


if __name__ == "__main__":
    main()
