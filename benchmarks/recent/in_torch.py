"""The networks of eight recent kinds in PyTorch, and what the inference engines export."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from cases import Cells
from nets.in_torch import MODES, VERSION, ConvNorm, begin, cross_entropy, filled, infer, train
from recent import workloads

__all__ = ["CELLS", "VERSION", "begin"]
CELLS = Cells()


class Text(nn.Module):
    def __init__(self, size, filters):
        super().__init__()
        self.embed, self.out = nn.Embedding(5000, size), nn.Linear(3 * filters, workloads.CLASSES)
        self.windows = nn.ModuleList([nn.Conv2d(1, filters, (k, size)) for k in (3, 4, 5)])

    def forward(self, words):
        x = self.embed(words)[:, None]
        return self.out(torch.cat([F.relu(window(x)).amax((2, 3)) for window in self.windows], 1))


class ChannelNorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x):
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class NextBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.windows, self.norm = nn.Conv2d(channels, channels, 7, 1, 3, groups=channels), ChannelNorm(channels)
        self.a, self.b = nn.Conv2d(channels, 4 * channels, 1), nn.Conv2d(4 * channels, channels, 1)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.norm(self.windows(x)))))


class ConvNeXt(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.stem, self.first_norm = nn.Conv2d(3, channels, 4, 4), ChannelNorm(channels)
        self.first = nn.ModuleList([NextBlock(channels) for _ in range(3)])
        self.norm, self.down = ChannelNorm(channels), nn.Conv2d(channels, 2 * channels, 2, 2)
        self.second = nn.ModuleList([NextBlock(2 * channels) for _ in range(3)])
        self.out = nn.Linear(2 * channels, workloads.CLASSES)

    def forward(self, x):
        h = self.first_norm(self.stem(x))
        for block in self.first:
            h = block(h)
        h = self.down(self.norm(h))
        for block in self.second:
            h = block(h)
        return self.out(h.mean((2, 3)))


class MBConv(nn.Module):
    def __init__(self, n_in, n_out, ksize, stride, factor):
        super().__init__()
        n, few = factor * n_in, max(1, n_in // 4)
        self.is_residual = stride == 1 and n_in == n_out
        self.expand, self.windows, self.project = ConvNorm(n_in, n, 1), ConvNorm(n, n, ksize, stride, n), ConvNorm(n, n_out, 1)
        self.squeeze, self.excite = nn.Linear(n, few), nn.Linear(few, n)

    def forward(self, x):
        h = F.silu(self.windows(F.silu(self.expand(x))))
        gate = torch.sigmoid(self.excite(F.silu(self.squeeze(h.mean((2, 3))))))
        h = self.project(h * gate[:, :, None, None])
        return h + x if self.is_residual else h


class EfficientNet(nn.Module):
    def __init__(self, narrower):
        super().__init__()
        self.stem, self.out = ConvNorm(3, 32 // narrower, 3, 2), nn.Linear(80 // narrower, workloads.CLASSES)
        self.blocks = nn.ModuleList([MBConv(a // narrower, b // narrower, *rest) for a, b, *rest in workloads.STAGES])

    def forward(self, x):
        h = F.silu(self.stem(x))
        for block in self.blocks:
            h = block(h)
        return self.out(h.mean((2, 3)))


class ShuffleBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        n = channels // 2
        self.a, self.windows, self.b = ConvNorm(n, n, 1), ConvNorm(n, n, 3, groups=n), ConvNorm(n, n, 1)

    def forward(self, x):
        n, channels, height, width = x.shape
        kept, h = x.chunk(2, 1)
        h = F.relu(self.b(self.windows(F.relu(self.a(h)))))
        h = torch.cat([kept, h], 1).reshape(n, 2, channels // 2, height, width)
        return h.transpose(1, 2).reshape(n, channels, height, width)


class ShuffleNet(nn.Module):
    def __init__(self, channels, count):
        super().__init__()
        self.stem, self.down = nn.Conv2d(3, channels, 3, 2, 1), nn.Conv2d(channels, 2 * channels, 3, 2, 1)
        self.first = nn.ModuleList([ShuffleBlock(channels) for _ in range(count)])
        self.second = nn.ModuleList([ShuffleBlock(2 * channels) for _ in range(count)])
        self.out = nn.Linear(2 * channels, workloads.CLASSES)

    def forward(self, x):
        h = F.relu(self.stem(x))
        for block in self.first:
            h = block(h)
        h = self.down(h)
        for block in self.second:
            h = block(h)
        return self.out(h.mean((2, 3)))


class Video(nn.Module):
    def __init__(self, width, elements):
        super().__init__()
        sizes = (3, width, 2 * width, 4 * width)
        self.layers = nn.ModuleList([nn.Conv3d(a, b, 3, padding=1) for a, b in zip(sizes, sizes[1:])])
        self.out = nn.Linear(4 * width * elements, workloads.CLASSES)

    def forward(self, x):
        for layer in self.layers:
            x = F.max_pool3d(F.relu(layer(x)), 2)
        return self.out(x.flatten(1))


class Layer(nn.Module):
    def __init__(self, units, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(units), nn.LayerNorm(units)
        self.qkv, self.join = nn.Linear(units, 3 * units), nn.Linear(units, units)
        self.a, self.b = nn.Linear(units, 4 * units), nn.Linear(4 * units, units)

    def forward(self, x):
        n, places, units = x.shape
        parts = self.qkv(self.norm1(x)).reshape(n, places, 3, self.heads, units // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(query, key, value)
        x = x + self.join(h.transpose(1, 2).reshape(n, places, units))
        return x + self.b(F.gelu(self.a(self.norm2(x))))


class ViT(nn.Module):
    def __init__(self, side, units, count):
        super().__init__()
        self.stem = nn.Conv2d(3, units, 8, 8)
        self.token = nn.Parameter(torch.zeros(1, 1, units))
        self.places = nn.Parameter(torch.zeros(1, (side // 8) ** 2 + 1, units))
        self.layers = nn.ModuleList([Layer(units, 3) for _ in range(count)])
        self.norm, self.out = nn.LayerNorm(units), nn.Linear(units, workloads.CLASSES)

    def forward(self, x):
        h = self.stem(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.token.expand(h.shape[0], -1, -1), h], 1) + self.places
        for layer in self.layers:
            h = layer(h)
        return self.out(self.norm(h[:, 0]))


class TimedBlock(nn.Module):
    def __init__(self, n_in, n_out, n_times):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, n_in), nn.GroupNorm(4, n_out)
        self.conv1, self.conv2 = nn.Conv2d(n_in, n_out, 3, 1, 1), nn.Conv2d(n_out, n_out, 3, 1, 1)
        self.times, self.short = nn.Linear(n_times, n_out), nn.Conv2d(n_in, n_out, 1)

    def forward(self, x, times):
        h = self.conv1(F.silu(self.norm1(x))) + self.times(F.silu(times))[:, :, None, None]
        return self.short(x) + self.conv2(F.silu(self.norm2(h)))


class Diffusion(nn.Module):
    def __init__(self, width):
        super().__init__()
        frequencies = np.exp(-np.arange(16) / 16 * np.log(10000)).astype(np.float32)
        self.frequencies = torch.from_numpy(frequencies)
        self.stem, self.times, self.out = nn.Conv2d(3, width, 3, 1, 1), nn.Linear(32, 2 * width), nn.Conv2d(width, 3, 3, 1, 1)
        self.before, self.after = TimedBlock(width, width, 2 * width), TimedBlock(2 * width, width, 2 * width)
        self.down, self.up = nn.Conv2d(width, 2 * width, 3, 2, 1), nn.Conv2d(2 * width, width, 3, 1, 1)
        self.middle = TimedBlock(2 * width, 2 * width, 2 * width)

    def forward(self, x, times):
        angles = times[:, None] * self.frequencies
        times = self.times(torch.cat([torch.sin(angles), torch.cos(angles)], 1))
        h = self.before(self.stem(x), times)
        inner = self.middle(self.down(h), times)
        inner = self.up(F.interpolate(inner, scale_factor=2))
        return self.out(self.after(torch.cat([inner, h], 1), times))


class NeRF(nn.Module):
    def __init__(self, units):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(a, units) for a in (39, units, units)])
        self.out = nn.Linear(units, 4)

    def forward(self, points, distances):
        rays, count, _ = points.shape
        x = points.reshape(-1, 3)
        h = torch.cat([x] + [function(x * 2.0 ** k) for k in range(6) for function in (torch.sin, torch.cos)], 1)
        for layer in self.layers:
            h = F.relu(layer(h))
        h = self.out(h).reshape(rays, count, 4)
        opacity = 1 - torch.exp(-F.softplus(h[:, :, 3]) * distances)
        left = torch.cumprod(1 - opacity + 1e-10, 1)
        weights = opacity * torch.cat([torch.ones(rays, 1), left[:, :-1]], 1)
        return (weights[:, :, None] * torch.sigmoid(h[:, :, :3])).sum(1)


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
    return F.mse_loss(model(*inputs), target)


LOSSES = {"Diffusion": squares, "NeRF": squares}


@CELLS.of(" ".join(name + ".infer" for name in MODELS), *MODES)
def inference(data, cell, mode):
    return infer(mode, model_of(data, cell), *data["inputs"])


@CELLS.of(" ".join(name + ".train" for name in MODELS), *MODES)
def training(data, cell, mode):
    loss = LOSSES.get(cell.split(".")[0], cross_entropy)
    return train(mode, model_of(data, cell), loss, *data["inputs"], data["target"], rate=workloads.RATE)
