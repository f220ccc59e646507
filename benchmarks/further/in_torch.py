"""The eight further networks in PyTorch, and what the inference engines export."""
import torch
import torch.nn.functional as F
from torch import nn

from cases import Cells
from nets.in_torch import MODES, VERSION, ConvNorm, begin, filled, infer

__all__ = ["CELLS", "VERSION", "begin"]
CELLS = Cells()


class VGG(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.layers = nn.ModuleList([ConvNorm(a, b, 3) for a, b in zip([3, *widths], widths)])
        self.out = nn.Linear(widths[-1], 10)

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = F.relu(layer(x))
            if i in (0, 1, 3, 5, 7):
                x = F.max_pool2d(x, 2)
        return self.out(x.flatten(1))


class NormConv(nn.Module):
    def __init__(self, n_in, n_out, ksize):
        super().__init__()
        self.bn, self.conv = nn.BatchNorm2d(n_in, eps=1e-5), nn.Conv2d(n_in, n_out, ksize, 1, ksize // 2, bias=False)

    def forward(self, x):
        return self.conv(F.relu(self.bn(x)))


class DenseNet(nn.Module):
    def __init__(self, growth, count):
        super().__init__()
        self.stem, self.blocks, self.transitions = nn.Conv2d(3, growth, 3, 1, 1, bias=False), nn.ModuleList(), nn.ModuleList()
        n = growth
        for _ in range(3):
            self.blocks.append(nn.ModuleList([NormConv(n + i * growth, growth, 3) for i in range(count)]))
            n += count * growth
            self.transitions.append(NormConv(n, n // 2, 1))
            n //= 2
        self.out = nn.Linear(n, 10)

    def forward(self, x):
        h = self.stem(x)
        for block, transition in zip(self.blocks, self.transitions):
            for layer in block:
                h = torch.cat([h, layer(h)], 1)
            h = F.avg_pool2d(transition(h), 2)
        return self.out(h.mean((2, 3)))


class Fire(nn.Module):
    def __init__(self, n_in, n_squeezed, n_out):
        super().__init__()
        self.squeeze, self.one = nn.Conv2d(n_in, n_squeezed, 1), nn.Conv2d(n_squeezed, n_out, 1)
        self.three = nn.Conv2d(n_squeezed, n_out, 3, 1, 1)

    def forward(self, x):
        h = F.relu(self.squeeze(x))
        return F.relu(torch.cat([self.one(h), self.three(h)], 1))


class SqueezeNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        outs = [width * k for k in (4, 4, 8, 8, 12, 12, 16, 16)]
        self.stem = nn.Conv2d(3, 4 * width, 3, 2, 1)
        ins = [4 * width, *(2 * n for n in outs)]
        self.fires = nn.ModuleList([Fire(a, b // 4, b) for a, b in zip(ins, outs)])
        self.out = nn.Conv2d(2 * outs[-1], 10, 1)

    def forward(self, x):
        h = F.max_pool2d(F.relu(self.stem(x)), 3, 2)
        for i, fire in enumerate(self.fires):
            h = fire(h)
            if i in (2, 6):
                h = F.max_pool2d(h, 3, 2)
        return F.relu(self.out(h)).mean((2, 3))


class NextBlock(nn.Module):
    def __init__(self, n_in, n_inner, n_out, groups):
        super().__init__()
        self.a, self.b = ConvNorm(n_in, n_inner, 1), ConvNorm(n_inner, n_inner, 3, groups=groups)
        self.c = ConvNorm(n_inner, n_out, 1)

    def forward(self, x):
        return F.relu(x + self.c(F.relu(self.b(F.relu(self.a(x))))))


class ResNeXt(nn.Module):
    def __init__(self, width, groups):
        super().__init__()
        self.stem, self.out = ConvNorm(3, width, 3, 2), nn.Linear(width, 10)
        self.blocks = nn.ModuleList([NextBlock(width, width // 2, width, groups) for _ in range(6)])

    def forward(self, x):
        h = F.relu(self.stem(x))
        for block in self.blocks:
            h = block(h)
        return self.out(h.mean((2, 3)))


class MixerLayer(nn.Module):
    def __init__(self, patches, channels):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.t1, self.t2 = nn.Linear(patches, 2 * patches), nn.Linear(2 * patches, patches)
        self.c1, self.c2 = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x):
        h = self.t2(F.gelu(self.t1(self.ln1(x).transpose(1, 2))))
        x = x + h.transpose(1, 2)
        return x + self.c2(F.gelu(self.c1(self.ln2(x))))


class Mixer(nn.Module):
    def __init__(self, side, patch, channels, layers):
        super().__init__()
        self.stem, self.out = nn.Conv2d(3, channels, patch, patch), nn.Linear(channels, 10)
        self.layers = nn.ModuleList([MixerLayer((side // patch) ** 2, channels) for _ in range(layers)])

    def forward(self, x):
        h = self.stem(x).flatten(2).transpose(1, 2)
        for layer in self.layers:
            h = layer(h)
        return self.out(h.mean(1))


class Temporal(nn.Module):
    def __init__(self, channels, count):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(channels, 2 * channels, 3, padding=2 ** i, dilation=2 ** i) for i in range(count)])

    def forward(self, x):
        for layer in self.layers:
            a, b = layer(x).chunk(2, 1)
            x = x + torch.tanh(a) * torch.sigmoid(b)
        return x


class Autoencoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        sizes = [3, width, 2 * width, 4 * width]
        self.down = nn.ModuleList([nn.Conv2d(a, b, 4, 2, 1) for a, b in zip(sizes, sizes[1:])])
        self.down_bn = nn.ModuleList([nn.BatchNorm2d(n, eps=1e-5) for n in sizes[1:]])
        self.up = nn.ModuleList([nn.ConvTranspose2d(b, a, 4, 2, 1) for a, b in zip(sizes[-2::-1], sizes[:0:-1])])
        self.up_bn = nn.ModuleList([nn.BatchNorm2d(n, eps=1e-5) for n in sizes[-2:0:-1]])

    def forward(self, x):
        for conv, bn in zip(self.down, self.down_bn):
            x = F.leaky_relu(bn(conv(x)), 0.2)
        for conv, bn in zip(self.up, self.up_bn):
            x = F.relu(bn(conv(x)))
        return torch.sigmoid(self.up[-1](x))


class HighwayLayer(nn.Module):
    def __init__(self, units):
        super().__init__()
        self.plain, self.transform = nn.Linear(units, units), nn.Linear(units, units)

    def forward(self, x):
        gate = torch.sigmoid(self.transform(x))
        return F.relu(self.plain(x)) * gate + x * (1 - gate)


class Highway(nn.Module):
    def __init__(self, units, count):
        super().__init__()
        self.layers = nn.ModuleList([HighwayLayer(units) for _ in range(count)])

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


def model_of(data, cell):
    """In sizes for tests, models are narrower by a factor of eight."""
    return filled(MODELS[cell.split(".")[0]](data, 8 if data["small"] else 1))


@CELLS.of(" ".join(name + ".infer" for name in MODELS), *MODES)
def further(data, cell, mode):
    return infer(mode, model_of(data, cell), data["x"])
