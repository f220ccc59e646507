"""The networks of twelve kinds with the layers of Chainer: eager, under @to_static, and frozen."""
import dy2static  # noqa: F401  (before Chainer, which it lets run on NumPy 2)
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import Chain

from cases import Cells
from nets.in_chainer import INFERENCE, VERSION, begin, filled, gelu, infer
from twins import workloads
from twins.networks import NETWORKS

__all__ = ["CELLS", "VERSION", "begin"]
CELLS = Cells()


class Network(Chain):
    def __init__(self, function, x):
        super().__init__()
        self.function, self.is_built = function, False
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            function(self, chainer.Variable(x))
        self.is_built = True

    def forward(self, x):
        return self.function(self, x)

    def layer(self, name, make):
        if not self.is_built:
            self.add_link(name, make())
        return self[name]

    def conv(self, name, x, before, after, size, stride=1, pad=0, groups=1, dilate=1):
        return self.layer(name, lambda: L.Convolution2D(before, after, size, stride, pad, groups=groups, dilate=dilate))(x)

    def along(self, name, x, before, after, size, dilate=1, pad=0, groups=1):
        return self.layer(name, lambda: L.ConvolutionND(1, before, after, size, pad=pad, groups=groups, dilate=dilate))(x)

    def norm(self, name, x, channels):
        return self.layer(name, lambda: L.BatchNormalization(channels, eps=1e-5))(x)

    norm_along = norm

    def layer_norm(self, name, x, units):
        norm = self.layer(name, lambda: L.LayerNormalization(units, eps=1e-5))
        return F.reshape(norm(F.reshape(x, (-1, units))), x.shape)

    def linear(self, name, x, before, after):
        return self.layer(name, lambda: L.Linear(before, after))(x)

    def maximum(self, x, size, stride, pad):
        return F.max_pooling_2d(x, size, stride, pad, cover_all=False)

    def maximum_along(self, x, size):
        return F.max_pooling_1d(x, size, cover_all=False)

    def mean(self, x, keep=False):
        return F.mean(x, axis=(2, 3), keepdims=keep)

    def times(self, x, gate):
        return x * F.broadcast_to(gate, x.shape)

    def pad(self, x, count):
        return F.pad(x, ((0, 0), (0, 0), (count, 0)), "constant")

    def swish(self, x):
        return x * F.sigmoid(x)

    def hard_swish(self, x):
        return x * F.clip(x * np.float32(1 / 6) + np.float32(0.5), 0.0, 1.0)

    def gelu(self, x):
        return gelu(x)

    def relu(self, x):
        return F.relu(x)

    def tanh(self, x):
        return F.tanh(x)

    def sigmoid(self, x):
        return F.sigmoid(x)

    def softmax(self, x):
        return F.softmax(x, axis=-1)

    def matmul(self, a, b):
        return F.matmul(a, b)

    def join(self, parts):
        return F.concat(parts, axis=1)

    def split(self, x, count):
        return F.split_axis(x, count, axis=1)

    def largest(self, x):
        return F.max(x, axis=2)

    def twice(self, x):
        return F.unpooling_2d(x, 2, cover_all=False)

    def to_places(self, x):
        # Chainer's `depth2space` takes other channels for a place than PyTorch's `pixel_shuffle`
        count, channels, rows, columns = x.shape
        return F.transpose(x.reshape(count, channels // 4, 2, 2, rows, columns), (0, 1, 4, 2, 5, 3)).reshape(
            count, channels // 4, 2 * rows, 2 * columns)

    def turned(self, x, *axes):
        return F.transpose(x, axes)


@CELLS.of(" ".join(workloads.CELLS), *INFERENCE)
def inference(data, cell, mode):
    (x,) = data["inputs"]
    return infer(mode, filled(Network(NETWORKS[cell.split(".")[0]], x)), x)
