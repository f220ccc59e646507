"""Eight further networks in Chainer, which were measured before anybody had looked at how they run."""
import dy2static  # noqa: F401  (before Chainer, which it lets run on NumPy 2)
import chainer.functions as F
import chainer.links as L
from chainer import Chain, ChainList

from cases import Cells
from nets.in_chainer import INFERENCE, VERSION, ConvNorm, begin, filled, gelu, infer

__all__ = ["CELLS", "VERSION", "begin"]
CELLS = Cells()


class VGG(Chain):
    def __init__(self, widths):
        super().__init__()
        with self.init_scope():
            self.layers = ChainList(*[ConvNorm(a, b, 3) for a, b in zip([3, *widths], widths)])
            self.out = L.Linear(widths[-1], 10)

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = F.relu(layer(x))
            if i in (0, 1, 3, 5, 7):
                x = F.max_pooling_2d(x, 2)
        return self.out(F.reshape(x, (len(x), -1)))


class DenseNet(Chain):
    def __init__(self, growth, count):
        super().__init__()
        with self.init_scope():
            self.stem, self.blocks, self.transitions = L.Convolution2D(3, growth, 3, 1, 1, nobias=True), ChainList(), ChainList()
            n = growth
            for _ in range(3):
                self.blocks.append(ChainList(*[NormConv(n + i * growth, growth, 3) for i in range(count)]))
                n += count * growth
                self.transitions.append(NormConv(n, n // 2, 1))
                n //= 2
            self.out = L.Linear(n, 10)

    def forward(self, x):
        h = self.stem(x)
        for block, transition in zip(self.blocks, self.transitions):
            for layer in block:
                h = F.concat([h, layer(h)])
            h = F.average_pooling_2d(transition(h), 2)
        return self.out(F.mean(h, axis=(2, 3)))


class NormConv(Chain):
    def __init__(self, n_in, n_out, ksize):
        super().__init__()
        with self.init_scope():
            self.bn = L.BatchNormalization(n_in, eps=1e-5)
            self.conv = L.Convolution2D(n_in, n_out, ksize, 1, ksize // 2, nobias=True)

    def forward(self, x):
        return self.conv(F.relu(self.bn(x)))


class Fire(Chain):
    def __init__(self, n_in, n_squeezed, n_out):
        super().__init__()
        with self.init_scope():
            self.squeeze = L.Convolution2D(n_in, n_squeezed, 1)
            self.one, self.three = L.Convolution2D(n_squeezed, n_out, 1), L.Convolution2D(n_squeezed, n_out, 3, 1, 1)

    def forward(self, x):
        h = F.relu(self.squeeze(x))
        return F.relu(F.concat([self.one(h), self.three(h)]))


class SqueezeNet(Chain):
    def __init__(self, width):
        super().__init__()
        outs = [width * k for k in (4, 4, 8, 8, 12, 12, 16, 16)]
        with self.init_scope():
            self.stem = L.Convolution2D(3, 4 * width, 3, 2, 1)
            ins = [4 * width, *(2 * n for n in outs)]
            self.fires = ChainList(*[Fire(a, b // 4, b) for a, b in zip(ins, outs)])
            self.out = L.Convolution2D(2 * outs[-1], 10, 1)

    def forward(self, x):
        h = F.max_pooling_2d(F.relu(self.stem(x)), 3, 2, cover_all=False)
        for i, fire in enumerate(self.fires):
            h = fire(h)
            if i in (2, 6):
                h = F.max_pooling_2d(h, 3, 2, cover_all=False)
        return F.mean(F.relu(self.out(h)), axis=(2, 3))


class NextBlock(Chain):
    def __init__(self, n_in, n_inner, n_out, groups):
        super().__init__()
        with self.init_scope():
            self.a, self.b = ConvNorm(n_in, n_inner, 1), ConvNorm(n_inner, n_inner, 3, groups=groups)
            self.c = ConvNorm(n_inner, n_out, 1)

    def forward(self, x):
        return F.relu(x + self.c(F.relu(self.b(F.relu(self.a(x))))))


class ResNeXt(Chain):
    def __init__(self, width, groups):
        super().__init__()
        with self.init_scope():
            self.stem = ConvNorm(3, width, 3, 2)
            self.blocks = ChainList(*[NextBlock(width, width // 2, width, groups) for _ in range(6)])
            self.out = L.Linear(width, 10)

    def forward(self, x):
        h = F.relu(self.stem(x))
        for block in self.blocks:
            h = block(h)
        return self.out(F.mean(h, axis=(2, 3)))


class MixerLayer(Chain):
    def __init__(self, patches, channels):
        super().__init__()
        with self.init_scope():
            self.ln1, self.ln2 = L.LayerNormalization(channels, eps=1e-5), L.LayerNormalization(channels, eps=1e-5)
            self.t1, self.t2 = L.Linear(patches, 2 * patches), L.Linear(2 * patches, patches)
            self.c1, self.c2 = L.Linear(channels, 4 * channels), L.Linear(4 * channels, channels)

    def forward(self, x):
        n, patches, channels = x.shape
        h = F.reshape(self.ln1(F.reshape(x, (-1, channels))), x.shape)
        h = F.reshape(F.transpose(h, (0, 2, 1)), (-1, patches))
        h = F.reshape(self.t2(gelu(self.t1(h))), (n, channels, patches))
        x = x + F.transpose(h, (0, 2, 1))
        h = self.c2(gelu(self.c1(self.ln2(F.reshape(x, (-1, channels))))))
        return x + F.reshape(h, x.shape)


class Mixer(Chain):
    def __init__(self, side, patch, channels, layers):
        super().__init__()
        with self.init_scope():
            self.stem = L.Convolution2D(3, channels, patch, patch)
            self.layers = ChainList(*[MixerLayer((side // patch) ** 2, channels) for _ in range(layers)])
            self.out = L.Linear(channels, 10)

    def forward(self, x):
        h = self.stem(x)
        h = F.transpose(F.reshape(h, (h.shape[0], h.shape[1], -1)), (0, 2, 1))
        for layer in self.layers:
            h = layer(h)
        return self.out(F.mean(h, axis=1))


class Temporal(Chain):
    def __init__(self, channels, count):
        super().__init__()
        with self.init_scope():
            self.layers = ChainList(*[L.Convolution1D(channels, 2 * channels, 3, pad=2 ** i, dilate=2 ** i) for i in range(count)])

    def forward(self, x):
        for layer in self.layers:
            a, b = F.split_axis(layer(x), 2, axis=1)
            x = x + F.tanh(a) * F.sigmoid(b)
        return x


class Autoencoder(Chain):
    def __init__(self, width):
        super().__init__()
        sizes = [3, width, 2 * width, 4 * width]
        with self.init_scope():
            self.down = ChainList(*[L.Convolution2D(a, b, 4, 2, 1) for a, b in zip(sizes, sizes[1:])])
            self.down_bn = ChainList(*[L.BatchNormalization(n, eps=1e-5) for n in sizes[1:]])
            self.up = ChainList(*[L.Deconvolution2D(b, a, 4, 2, 1) for a, b in zip(sizes[-2::-1], sizes[:0:-1])])
            self.up_bn = ChainList(*[L.BatchNormalization(n, eps=1e-5) for n in sizes[-2:0:-1]])

    def forward(self, x):
        for conv, bn in zip(self.down, self.down_bn):
            x = F.leaky_relu(bn(conv(x)))
        for conv, bn in zip(self.up, self.up_bn):
            x = F.relu(bn(conv(x)))
        return F.sigmoid(self.up[len(self.up) - 1](x))


class Highway(Chain):
    def __init__(self, units, count):
        super().__init__()
        with self.init_scope():
            self.layers = ChainList(*[L.Highway(units, activate=F.relu) for _ in range(count)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


MODELS = {
    "VGG": lambda data, k: VGG([w // k for w in (64, 128, 256, 256, 512, 512, 512, 512)]),
    "Dense": lambda data, k: DenseNet(16 // k, 6 // min(k, 3)),
    "Squeeze": lambda data, k: SqueezeNet(16 // k),
    "ResNeXt": lambda data, k: ResNeXt(256 // k, 16 // k),
    "Mixer": lambda data, k: Mixer(data["x"].shape[2], 16, 256 // k, 6 // min(k, 3)),
    "Temporal": lambda data, k: Temporal(data["x"].shape[1], 6 // min(k, 3)),
    "Autoencoder": lambda data, k: Autoencoder(32 // k),
    "Highway": lambda data, k: Highway(data["x"].shape[1], 10 // min(k, 5)),
}


@CELLS.of(" ".join(name + ".infer" for name in MODELS), *INFERENCE)
def further(data, cell, mode):
    """In sizes for tests, models are narrower by a factor of eight."""
    return infer(mode, filled(MODELS[cell.split(".")[0]](data, 8 if data["small"] else 1)), data["x"])
