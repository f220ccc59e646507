"""The networks in PyTorch: eager, and with torch.compile of the model or the model with its loss."""
import itertools

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from cases import Case, Cells
from frameworks import in_torch as models
from nets import workloads

VERSION = models.VERSION
CELLS = Cells()
MODES = models.MODES
STATISTICS = {"running_mean": "avg_mean", "running_var": "avg_var"}


def begin(mode):
    pass


def filled(model):
    """The model with the weights of `workloads.weight`, by Chainer's names."""
    with torch.no_grad():
        for path, layer in model.named_modules():
            norm = isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm, nn.GroupNorm))
            names = {"weight": "gamma", "bias": "beta", **STATISTICS} if norm else {"weight": "W", "bias": "b"}
            for name, array in itertools.chain(layer.named_parameters(recurse=False), layer.named_buffers(recurse=False)):
                if name != "num_batches_tracked" and not isinstance(layer, nn.LSTM):
                    full = ".".join(part for part in (path, names.get(name, name)) if part)
                    array.copy_(torch.from_numpy(workloads.weight(full, tuple(array.shape))))
    return model


def infer(mode, model, *arguments):
    return models.inference(mode, model.eval(), [models.tensor(a) if isinstance(a, np.ndarray) else a for a in arguments])


def train(mode, model, loss, *arguments, adam=False, rate=workloads.RATE):
    arguments = [models.tensor(a) for a in arguments]
    return train_with(mode, model, loss, lambda: arguments, adam, rate)


def train_with(mode, model, loss, batch, adam=False, rate=workloads.RATE):
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, fused=True) if adam else torch.optim.SGD(parameters, rate, fused=True)
    function = models.compiled(lambda *arguments: loss(model, *arguments), mode)

    def step():
        optimizer.zero_grad()
        value = function(*batch())
        value.backward()
        optimizer.step()
        return value
    return Case(step, lambda value: [value.item()], checked=2)


def cross_entropy(model, x, t):
    return F.cross_entropy(model(x), t)


# ---- convolutions

class ConvNorm(nn.Module):
    def __init__(self, n_in, n_out, ksize, stride=1, groups=1):
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, ksize, stride, ksize // 2, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(n_out, eps=1e-5)

    def forward(self, x):
        return self.bn(self.conv(x))


class Bottleneck(nn.Module):
    def __init__(self, n_in, n_inner, stride, project):
        super().__init__()
        self.a, self.b = ConvNorm(n_in, n_inner, 1), ConvNorm(n_inner, n_inner, 3, stride)
        self.c = ConvNorm(n_inner, 4 * n_inner, 1)
        self.project = ConvNorm(n_in, 4 * n_inner, 1, stride) if project else None

    def forward(self, x):
        h = self.c(F.relu(self.b(F.relu(self.a(x)))))
        return F.relu(h + (x if self.project is None else self.project(x)))


class ResNet(nn.Module):
    def __init__(self, stages):
        super().__init__()
        n_in = stages[0][0]
        self.stem, self.blocks = ConvNorm(3, n_in, 7, 2), nn.ModuleList()
        for n_inner, count, stride in stages:
            for i in range(count):
                self.blocks.append(Bottleneck(n_in, n_inner, stride if i == 0 else 1, i == 0))
                n_in = 4 * n_inner
        self.out = nn.Linear(n_in, 10)

    def forward(self, x):
        h = F.max_pool2d(F.relu(self.stem(x)), 3, 2, 1)
        for block in self.blocks:
            h = block(h)
        return self.out(h.mean((2, 3)))


def resnet_of(data):
    return filled(ResNet(workloads.BOTTLENECKS_SMALL if data["small"] else workloads.BOTTLENECKS))


class Inverted(nn.Module):
    def __init__(self, n_in, n_out, stride, expansion):
        super().__init__()
        inner = n_in * expansion
        self.adds = stride == 1 and n_in == n_out
        self.expand = ConvNorm(n_in, inner, 1) if expansion > 1 else None
        self.depthwise, self.project = ConvNorm(inner, inner, 3, stride, groups=inner), ConvNorm(inner, n_out, 1)

    def forward(self, x):
        h = x if self.expand is None else F.relu6(self.expand(x))
        h = self.project(F.relu6(self.depthwise(h)))
        return x + h if self.adds else h


class MobileNet(nn.Module):
    def __init__(self, stages, n_first, n_last):
        super().__init__()
        self.stem, self.blocks = ConvNorm(3, n_first, 3, 2), nn.ModuleList()
        n_in = n_first
        for expansion, n_out, count, stride in stages:
            for i in range(count):
                self.blocks.append(Inverted(n_in, n_out, stride if i == 0 else 1, expansion))
                n_in = n_out
        self.head, self.out = ConvNorm(n_in, n_last, 1), nn.Linear(n_last, 10)

    def forward(self, x):
        h = F.relu6(self.stem(x))
        for block in self.blocks:
            h = block(h)
        return self.out(F.relu6(self.head(h)).mean((2, 3)))


def mobilenet_of(data):
    return filled(MobileNet(workloads.INVERTED_SMALL, 8, 16) if data["small"] else MobileNet(workloads.INVERTED, 32, 1280))


@CELLS.of("ResNet50.infer1 ResNet50.infer8 ResNet50.train MobileNet.infer MobileNet.train", *MODES)
def images(data, cell, mode):
    model = IMAGES[cell.split(".")[0]](data)
    if cell.endswith("train"):
        return train(mode, model, cross_entropy, data["x"], data["t"], rate=workloads.RATES[cell])
    return infer(mode, model, data["x"])


IMAGES = {"ResNet50": resnet_of, "MobileNet": mobilenet_of}


class Double(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.a, self.b = ConvNorm(n_in, n_out, 3), ConvNorm(n_out, n_out, 3)

    def forward(self, x):
        return F.relu(self.b(F.relu(self.a(x))))


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        sizes = [width, 2 * width, 4 * width, 8 * width]
        self.down = nn.ModuleList([Double(a, b) for a, b in zip([3, *sizes], sizes)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(2 * n, n, 2, 2) for n in sizes[-2::-1]])
        self.merge = nn.ModuleList([Double(2 * n, n) for n in sizes[-2::-1]])
        self.out = nn.Conv2d(width, 4, 1)

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        kept.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([kept.pop(), up(x)], 1))
        return self.out(x)


@CELLS.of("UNet.train", *MODES)
def unet(data, cell, mode):
    return train(mode, filled(UNet(data["width"])), cross_entropy, data["x"], data["t"])


# ---- transformers

class Attention(nn.Module):
    def __init__(self, units, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = [nn.Linear(units, units) for _ in range(4)]

    def forward(self, x, causal):
        n, length, units = x.shape
        q, k, v = (layer(x).view(n, length, self.heads, -1).transpose(1, 2) for layer in (self.q, self.k, self.v))
        context = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return self.o(context.transpose(1, 2).reshape(n, length, units))


class Layer(nn.Module):
    def __init__(self, units, heads, first):
        super().__init__()
        self.first, self.attention = first, Attention(units, heads)
        self.ln1, self.ln2 = nn.LayerNorm(units), nn.LayerNorm(units)
        self.f1, self.f2 = nn.Linear(units, 4 * units), nn.Linear(4 * units, units)

    def forward(self, x, causal=False):
        if self.first:
            x = x + self.attention(self.ln1(x), causal)
            return x + self.f2(F.gelu(self.f1(self.ln2(x))))
        x = self.ln1(x + self.attention(x, causal))
        return self.ln2(x + self.f2(F.gelu(self.f1(x))))


class GPT(nn.Module):
    def __init__(self, words, units, layers, heads, length):
        super().__init__()
        self.embed, self.places = nn.Embedding(words, units), nn.Parameter(torch.zeros(length, units))
        self.layers = nn.ModuleList([Layer(units, heads, True) for _ in range(layers)])
        self.norm, self.out = nn.LayerNorm(units), nn.Linear(units, words)

    def forward(self, x):
        h = self.embed(x) + self.places[:x.shape[1]]
        for layer in self.layers:
            h = layer(h, True)
        return self.out(self.norm(h))


def gpt_of(data):
    return filled(GPT(data["words"], data["units"], data["layers"], data["heads"], data["x"].shape[1]))


@CELLS.of("GPT.infer GPT.train", *MODES)
def gpt(data, cell, mode):
    if cell.endswith("infer"):
        return infer(mode, gpt_of(data), data["x"])
    return train(mode, gpt_of(data), models.language_loss, data["x"], data["t"], adam=True)


class OneLayer(nn.Module):
    def __init__(self, units, heads):
        super().__init__()
        self.layer = Layer(units, heads, False)

    def forward(self, x):
        return self.layer(x)


def bert_of(data):
    return filled(OneLayer(data["units"], data["heads"]))


@CELLS.of("BERT.infer BERT.train", *MODES)
def bert(data, cell, mode):
    if cell.endswith("infer"):
        return infer(mode, bert_of(data), data["x"])
    return train(mode, bert_of(data), models.squared_error, data["x"], data["t"])


# ---- sequences

class Tagger(nn.Module):
    def __init__(self, words, tags, units):
        super().__init__()
        self.embed, self.out = nn.Embedding(words, units), nn.Linear(2 * units, tags)
        self.lstm = nn.LSTM(units, units, bidirectional=True)

    def forward(self, packed):
        h = nn.utils.rnn.PackedSequence(self.embed(packed.data), packed.batch_sizes)
        return self.out(self.lstm(h)[0].data)


def tagging_loss(model, xs, ts):
    pack = nn.utils.rnn.pack_sequence
    return F.cross_entropy(model(pack(xs)), pack(ts).data)


@CELLS.of("Tagger.recurring Tagger.fresh", "eager")
def tagger(data, cell, mode):
    model = filled(Tagger(data["words"], data["tags"], data["units"]))
    with torch.no_grad():
        for name, ending in (("forward", ""), ("backward", "_reverse")):
            found = workloads.recurrent(name, data["units"], data["units"])
            for part, array in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), found):
                getattr(model.lstm, f"{part}_l0{ending}").copy_(torch.from_numpy(array))
    turns = itertools.count() if cell.endswith("fresh") else itertools.cycle(range(workloads.BATCHES))

    def batch():
        return [[models.tensor(row) for row in rows] for rows in workloads.sentences(data, next(turns))]
    return train_with(mode, model, tagging_loss, batch, adam=True)


# ---- graphs

class GraphNet(nn.Module):
    def __init__(self, units):
        super().__init__()
        self.messages = nn.ModuleList([nn.Linear(2 * units, units) for _ in range(2)])
        self.updates = nn.ModuleList([nn.Linear(2 * units, units) for _ in range(2)])

    def forward(self, x, source, target):
        for message, update in zip(self.messages, self.updates):
            m = F.relu(message(torch.cat([x[source], x[target]], 1)))
            total = torch.zeros_like(x).scatter_add(0, target[:, None].expand_as(m), m)
            x = x + F.relu(update(torch.cat([x, total], 1)))
        return x


def graph_of(data):
    return filled(GraphNet(data["units"]))


@CELLS.of("Graph.infer Graph.train", *MODES)
def graph(data, cell, mode):
    arguments = [data[name] for name in ("x", "source", "target")]
    if cell.endswith("infer"):
        return infer(mode, graph_of(data), *arguments)
    return train(mode, graph_of(data), lambda model, x, s, e, t: F.mse_loss(model(x, s, e), t), *arguments, data["t"])


# ---- decoding

class GRUDecoder(nn.Module):
    def __init__(self, words, units):
        super().__init__()
        self.embed, self.out = nn.Embedding(words, units), nn.Linear(units, words)
        self.x, self.h = nn.Linear(units, 3 * units), nn.Linear(units, 3 * units)

    def forward(self, h):
        word, total = torch.zeros(1, dtype=torch.long), torch.zeros(())
        for _ in range(workloads.STEPS):
            (rx, zx, nx), (rh, zh, nh) = self.x(self.embed(word)).chunk(3, 1), self.h(h).chunk(3, 1)
            z = torch.sigmoid(zx + zh)
            h = (1 - z) * torch.tanh(nx + torch.sigmoid(rx + rh) * nh) + z * h
            best, word = self.out(h).max(1)
            total = total + best[0]
            if word[0] == 1:
                break
        return total.view(1)


class AttentionDecoder(nn.Module):
    def __init__(self, words, units, lists):
        super().__init__()
        self.units, self.lists = units, lists
        self.embed, self.out = nn.Embedding(words, units), nn.Linear(units, words)
        self.q, self.k, self.v = [nn.Linear(units, units) for _ in range(3)]

    def forward(self, h):
        keys, values = ([], []) if self.lists else torch.zeros(2, workloads.STEPS, self.units)
        word, total = torch.zeros(1, dtype=torch.long), torch.zeros(())
        for i in range(workloads.STEPS):
            h = h * 0.5 + self.embed(word)
            if self.lists:
                keys.append(self.k(h))
                values.append(self.v(h))
                seen = torch.cat(keys), torch.cat(values)
            else:
                keys[i], values[i] = self.k(h)[0], self.v(h)[0]
                seen = keys[:i + 1], values[:i + 1]
            h = torch.tanh(h + torch.softmax(self.q(h) @ seen[0].T * 0.1, 1) @ seen[1])
            best, word = self.out(h).max(1)
            total = total + best[0]
            if word[0] == 1:
                break
        return total.view(1)


@CELLS.of("Decode.gru Decode.cache Decode.lists", *MODES)
def decode(data, cell, mode):
    sizes = data["words"], data["units"]
    model = GRUDecoder(*sizes) if cell.endswith("gru") else AttentionDecoder(*sizes, cell.endswith("lists"))
    return infer(mode, filled(model), data["start"])


# ---- elements

def ten(x, y):
    h = torch.tanh(x * y + 0.5)
    return (torch.sigmoid(h - y) * torch.exp(-(x * x)) + torch.sqrt(torch.abs(h) + 1)).sum()


@CELLS.of("Elements.infer Elements.grad", *MODES)
def elements(data, cell, mode):
    x, y = (models.tensor(data[name]) for name in "xy")
    if cell.endswith("infer"):
        return models.inference(mode, ten, [x, y], lambda value: [value.item()])
    function = models.compiled(ten, mode)
    x.requires_grad_()
    y.requires_grad_()

    def step():
        x.grad = y.grad = None
        value = function(x, y)
        value.backward()
        return value
    return Case(step, lambda value: [value.item(), models.norm([x.grad]), models.norm([y.grad])])
