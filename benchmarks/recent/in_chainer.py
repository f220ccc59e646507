"""Networks of eight recent kinds in Chainer: eager, under @to_static, and frozen."""
import dy2static  # noqa: F401  (before Chainer, which it lets run on NumPy 2)
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import Chain, ChainList, Parameter, optimizers

from cases import Cells
from nets.in_chainer import INFERENCE, MODES, VERSION, ConvNorm, begin, cross_entropy, filled, gelu, infer, train
from recent import workloads

__all__ = ["CELLS", "VERSION", "begin"]
CELLS = Cells()


class Text(Chain):
    def __init__(self, size, filters):
        super().__init__()
        with self.init_scope():
            self.embed, self.out = L.EmbedID(5000, size), L.Linear(3 * filters, workloads.CLASSES)
            self.windows = ChainList(*[L.Convolution2D(1, filters, (k, size)) for k in (3, 4, 5)])

    def forward(self, words):
        x = self.embed(words)[:, None]
        return self.out(F.concat([F.max(F.relu(window(x)), axis=(2, 3)) for window in self.windows], axis=1))


class ChannelNorm(Chain):
    """Layer normalization over the channels of each place."""

    def __init__(self, channels):
        super().__init__()
        with self.init_scope():
            self.norm = L.LayerNormalization(channels, eps=1e-5)

    def forward(self, x):
        n, channels, height, width = x.shape
        rows = self.norm(F.reshape(F.transpose(x, (0, 2, 3, 1)), (-1, channels)))
        return F.transpose(F.reshape(rows, (n, height, width, channels)), (0, 3, 1, 2))


class NextBlock(Chain):
    def __init__(self, channels):
        super().__init__()
        with self.init_scope():
            self.windows, self.norm = L.Convolution2D(channels, channels, 7, 1, 3, groups=channels), ChannelNorm(channels)
            self.a, self.b = L.Convolution2D(channels, 4 * channels, 1), L.Convolution2D(4 * channels, channels, 1)

    def forward(self, x):
        return x + self.b(gelu(self.a(self.norm(self.windows(x)))))


class ConvNeXt(Chain):
    def __init__(self, channels):
        super().__init__()
        with self.init_scope():
            self.stem, self.first_norm = L.Convolution2D(3, channels, 4, 4), ChannelNorm(channels)
            self.first = ChainList(*[NextBlock(channels) for _ in range(3)])
            self.norm, self.down = ChannelNorm(channels), L.Convolution2D(channels, 2 * channels, 2, 2)
            self.second = ChainList(*[NextBlock(2 * channels) for _ in range(3)])
            self.out = L.Linear(2 * channels, workloads.CLASSES)

    def forward(self, x):
        h = self.first_norm(self.stem(x))
        for block in self.first:
            h = block(h)
        h = self.down(self.norm(h))
        for block in self.second:
            h = block(h)
        return self.out(F.mean(h, axis=(2, 3)))


def swish(x):
    return x * F.sigmoid(x)


class MBConv(Chain):
    def __init__(self, n_in, n_out, ksize, stride, factor):
        super().__init__()
        n, few = factor * n_in, max(1, n_in // 4)
        self.is_residual = stride == 1 and n_in == n_out
        with self.init_scope():
            self.expand, self.windows, self.project = ConvNorm(n_in, n, 1), ConvNorm(n, n, ksize, stride, n), ConvNorm(n, n_out, 1)
            self.squeeze, self.excite = L.Linear(n, few), L.Linear(few, n)

    def forward(self, x):
        h = swish(self.windows(swish(self.expand(x))))
        gate = F.sigmoid(self.excite(swish(self.squeeze(F.mean(h, axis=(2, 3))))))
        h = self.project(h * F.broadcast_to(gate[:, :, None, None], h.shape))
        return h + x if self.is_residual else h


class EfficientNet(Chain):
    def __init__(self, narrower):
        super().__init__()
        with self.init_scope():
            self.stem = ConvNorm(3, 32 // narrower, 3, 2)
            self.blocks = ChainList(*[MBConv(a // narrower, b // narrower, *rest) for a, b, *rest in workloads.STAGES])
            self.out = L.Linear(80 // narrower, workloads.CLASSES)

    def forward(self, x):
        h = swish(self.stem(x))
        for block in self.blocks:
            h = block(h)
        return self.out(F.mean(h, axis=(2, 3)))


class ShuffleBlock(Chain):
    def __init__(self, channels):
        super().__init__()
        n = channels // 2
        with self.init_scope():
            self.a, self.windows, self.b = ConvNorm(n, n, 1), ConvNorm(n, n, 3, groups=n), ConvNorm(n, n, 1)

    def forward(self, x):
        n, channels, height, width = x.shape
        kept, h = F.split_axis(x, 2, axis=1)
        h = F.relu(self.b(self.windows(F.relu(self.a(h)))))
        h = F.reshape(F.concat([kept, h], axis=1), (n, 2, channels // 2, height, width))
        return F.reshape(F.transpose(h, (0, 2, 1, 3, 4)), x.shape)


class ShuffleNet(Chain):
    def __init__(self, channels, count):
        super().__init__()
        with self.init_scope():
            self.stem, self.down = L.Convolution2D(3, channels, 3, 2, 1), L.Convolution2D(channels, 2 * channels, 3, 2, 1)
            self.first = ChainList(*[ShuffleBlock(channels) for _ in range(count)])
            self.second = ChainList(*[ShuffleBlock(2 * channels) for _ in range(count)])
            self.out = L.Linear(2 * channels, workloads.CLASSES)

    def forward(self, x):
        h = F.relu(self.stem(x))
        for block in self.first:
            h = block(h)
        h = self.down(h)
        for block in self.second:
            h = block(h)
        return self.out(F.mean(h, axis=(2, 3)))


class Video(Chain):
    def __init__(self, width, elements):
        super().__init__()
        sizes = (3, width, 2 * width, 4 * width)
        with self.init_scope():
            self.layers = ChainList(*[L.Convolution3D(a, b, 3, pad=1) for a, b in zip(sizes, sizes[1:])])
            self.out = L.Linear(4 * width * elements, workloads.CLASSES)

    def forward(self, x):
        for layer in self.layers:
            x = F.max_pooling_nd(F.relu(layer(x)), 2)
        return self.out(x)


class Layer(Chain):
    def __init__(self, units, heads):
        super().__init__()
        self.heads = heads
        with self.init_scope():
            self.norm1, self.norm2 = L.LayerNormalization(units, eps=1e-5), L.LayerNormalization(units, eps=1e-5)
            self.qkv, self.join = L.Linear(units, 3 * units), L.Linear(units, units)
            self.a, self.b = L.Linear(units, 4 * units), L.Linear(4 * units, units)

    def forward(self, x):
        n, places, units = x.shape
        rows = F.reshape(x, (-1, units))
        parts = F.reshape(self.qkv(self.norm1(rows)), (n, places, 3, self.heads, -1))
        query, key, value = F.separate(F.transpose(parts, (2, 0, 3, 1, 4)), axis=0)
        weights = F.softmax(F.matmul(query, key, transb=True) * np.float32((units // self.heads) ** -0.5), axis=3)
        rows = rows + self.join(F.reshape(F.transpose(F.matmul(weights, value), (0, 2, 1, 3)), (-1, units)))
        return F.reshape(rows + self.b(gelu(self.a(self.norm2(rows)))), x.shape)


class ViT(Chain):
    def __init__(self, side, units, count):
        super().__init__()
        with self.init_scope():
            self.stem = L.Convolution2D(3, units, 8, 8)
            self.token = Parameter(np.zeros((1, 1, units), "f"))
            self.places = Parameter(np.zeros((1, (side // 8) ** 2 + 1, units), "f"))
            self.layers = ChainList(*[Layer(units, 3) for _ in range(count)])
            self.norm, self.out = L.LayerNormalization(units, eps=1e-5), L.Linear(units, workloads.CLASSES)

    def forward(self, x):
        h = self.stem(x)
        n, units = h.shape[:2]
        h = F.transpose(F.reshape(h, (n, units, -1)), (0, 2, 1))
        h = F.concat([F.broadcast_to(self.token, (n, 1, units)), h], axis=1)
        h = h + F.broadcast_to(self.places, h.shape)
        for layer in self.layers:
            h = layer(h)
        return self.out(self.norm(h[:, 0]))


class TimedBlock(Chain):
    def __init__(self, n_in, n_out, n_times):
        super().__init__()
        with self.init_scope():
            self.norm1, self.norm2 = L.GroupNormalization(4, n_in), L.GroupNormalization(4, n_out)
            self.conv1, self.conv2 = L.Convolution2D(n_in, n_out, 3, 1, 1), L.Convolution2D(n_out, n_out, 3, 1, 1)
            self.times, self.short = L.Linear(n_times, n_out), L.Convolution2D(n_in, n_out, 1)

    def forward(self, x, times):
        h = self.conv1(swish(self.norm1(x)))
        h = h + F.broadcast_to(self.times(swish(times))[:, :, None, None], h.shape)
        return self.short(x) + self.conv2(swish(self.norm2(h)))


class Diffusion(Chain):
    def __init__(self, width):
        super().__init__()
        self.frequencies = np.exp(-np.arange(16) / 16 * np.log(10000)).astype(np.float32)
        with self.init_scope():
            self.stem, self.out = L.Convolution2D(3, width, 3, 1, 1), L.Convolution2D(width, 3, 3, 1, 1)
            self.times = L.Linear(32, 2 * width)
            self.before, self.after = TimedBlock(width, width, 2 * width), TimedBlock(2 * width, width, 2 * width)
            self.down, self.up = L.Convolution2D(width, 2 * width, 3, 2, 1), L.Convolution2D(2 * width, width, 3, 1, 1)
            self.middle = TimedBlock(2 * width, 2 * width, 2 * width)

    def forward(self, x, times):
        angles = times[:, None] * self.frequencies
        times = self.times(np.concatenate([np.sin(angles), np.cos(angles)], axis=1))
        h = self.before(self.stem(x), times)
        inner = self.middle(self.down(h), times)
        inner = self.up(F.unpooling_2d(inner, 2, cover_all=False))
        return self.out(self.after(F.concat([inner, h], axis=1), times))


class NeRF(Chain):
    def __init__(self, units):
        super().__init__()
        with self.init_scope():
            self.layers = ChainList(*[L.Linear(a, units) for a in (39, units, units)])
            self.out = L.Linear(units, 4)

    def forward(self, points, distances):
        rays, count, _ = points.shape
        x = points.reshape(-1, 3)
        h = F.concat([x] + [function(x * np.float32(2 ** k)) for k in range(6) for function in (F.sin, F.cos)], axis=1)
        for layer in self.layers:
            h = F.relu(layer(h))
        h = F.reshape(self.out(h), (rays, count, 4))
        opacity = 1 - F.exp(-F.softplus(h[:, :, 3]) * distances)
        left = F.cumprod(1 - opacity + 1e-10, axis=1)
        weights = opacity * F.concat([np.ones((rays, 1), np.float32), left[:, :-1]], axis=1)
        colors = F.sigmoid(h[:, :, :3])
        return F.sum(F.broadcast_to(weights[:, :, None], colors.shape) * colors, axis=1)


MODELS = {
    "Text": lambda data, k: Text(100 // k, 100 // k),
    "ConvNeXt": lambda data, k: ConvNeXt(96 // k),
    "Efficient": lambda data, k: EfficientNet(k),
    "Shuffle": lambda data, k: ShuffleNet(64 // k, 6 // min(k, 3)),
    "Video": lambda data, k: Video(16 // k, int(np.prod(data["inputs"][0].shape[2:])) // 512),
    "ViT": lambda data, k: ViT(data["inputs"][0].shape[2], 192 // k, 4 // min(k, 2)),
    "Diffusion": lambda data, k: Diffusion(32 // min(k, 4)),
    "NeRF": lambda data, k: NeRF(128 // k),
}


def model_of(data, cell):
    """In sizes for tests, models are narrower by a factor of eight, or four."""
    return filled(MODELS[cell.split(".")[0]](data, 8 if data["small"] else 1))


def squares(model, *arguments):
    *inputs, target = arguments
    return F.mean_squared_error(model(*inputs), target)


LOSSES = {"Diffusion": squares, "NeRF": squares}


@CELLS.of(" ".join(name + ".infer" for name in MODELS), *INFERENCE)
def inference(data, cell, mode):
    return infer(mode, model_of(data, cell), *data["inputs"])


@CELLS.of(" ".join(name + ".train" for name in MODELS), *MODES)
def training(data, cell, mode):
    loss = LOSSES.get(cell.split(".")[0], cross_entropy)
    return train(mode, model_of(data, cell), loss, *data["inputs"], data["target"], optimizer=optimizers.SGD(workloads.RATE))
