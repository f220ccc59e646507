"""The networks of twelve kinds with the layers of PyTorch, and what the inference engines export."""
import torch
import torch.nn.functional as F
from torch import nn

from cases import Cells
from nets.in_torch import MODES, VERSION, begin, filled, infer
from twins import workloads
from twins.networks import NETWORKS

__all__ = ["CELLS", "VERSION", "begin"]
CELLS = Cells()


class Network(nn.Module):
    relu, tanh, sigmoid, swish = map(staticmethod, (torch.relu, torch.tanh, torch.sigmoid, F.silu))
    hard_swish, gelu, matmul, times = map(staticmethod, (F.hardswish, F.gelu, torch.matmul, torch.mul))

    def __init__(self, function, x):
        super().__init__()
        self.function, self.is_built = function, False
        with torch.no_grad():
            function(self, torch.from_numpy(x))
        self.is_built = True

    def forward(self, x):
        return self.function(self, x)

    def layer(self, name, make):
        if not self.is_built:
            self.add_module(name, make())
        return getattr(self, name)

    def conv(self, name, x, before, after, size, stride=1, pad=0, groups=1, dilate=1):
        return self.layer(name, lambda: nn.Conv2d(before, after, size, stride, pad, dilate, groups))(x)

    def along(self, name, x, before, after, size, dilate=1, pad=0, groups=1):
        return self.layer(name, lambda: nn.Conv1d(before, after, size, 1, pad, dilate, groups))(x)

    def norm(self, name, x, channels):
        return self.layer(name, lambda: nn.BatchNorm2d(channels))(x)

    def norm_along(self, name, x, channels):
        return self.layer(name, lambda: nn.BatchNorm1d(channels))(x)

    def layer_norm(self, name, x, units):
        return self.layer(name, lambda: nn.LayerNorm(units))(x)

    def linear(self, name, x, before, after):
        return self.layer(name, lambda: nn.Linear(before, after))(x)

    def maximum(self, x, size, stride, pad):
        return F.max_pool2d(x, size, stride, pad)

    def maximum_along(self, x, size):
        return F.max_pool1d(x, size)

    def mean(self, x, keep=False):
        return x.mean((2, 3), keepdim=keep)

    def pad(self, x, count):
        return F.pad(x, (count, 0))

    def softmax(self, x):
        return torch.softmax(x, -1)

    def join(self, parts):
        return torch.cat(parts, 1)

    def split(self, x, count):
        return torch.chunk(x, count, 1)

    def largest(self, x):
        return x.amax(2)

    def twice(self, x):
        return F.interpolate(x, scale_factor=2, mode="nearest")

    def to_places(self, x):
        return F.pixel_shuffle(x, 2)

    def turned(self, x, *axes):
        return x.permute(axes)


def model_of(data, cell):
    """The network of a cell with its weights."""
    return filled(Network(NETWORKS[cell.split(".")[0]], *data["inputs"]))


@CELLS.of(" ".join(workloads.CELLS), *MODES)
def inference(data, cell, mode):
    return infer(mode, model_of(data, cell), *data["inputs"])
