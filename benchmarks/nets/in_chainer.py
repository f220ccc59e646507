"""The networks as Chainer programs: eager, and under @to_static."""
import itertools

import dy2static
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import Chain, ChainList, Variable, optimizers

from cases import Case, Cells
from frameworks import in_chainer as models
from nets import workloads

VERSION = models.VERSION
CELLS = Cells()
MODES = "eager", "dy2static"
INFERENCE = (*MODES, "frozen")


def begin(mode):
    """Before the cases of a process are made: Chainer alone is Chainer's methods alone."""
    if mode == "eager":
        dy2static.enable_to_static(False)


def filled(model):
    """The model with the weights of `workloads.weight`."""
    for path, parameter in model.namedparams():
        name = path[1:].replace("/", ".")
        parameter.array[...] = workloads.weight(name, parameter.shape)
    for path, link in model.namedlinks():
        if isinstance(link, L.BatchNormalization):
            for statistic in (link.avg_mean, link.avg_var):
                name = "avg_mean" if statistic is link.avg_mean else "avg_var"
                statistic[...] = workloads.weight(path[1:].replace("/", ".") + "." + name, statistic.shape)
    return model


def infer(mode, model, *arguments):
    """The case of calls in test mode without gradients."""
    function = model if mode == "eager" else dy2static.to_static(model)
    if mode == "frozen":
        dy2static.freeze(model)

    def step():
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return function(*arguments)
    return Case(step, models.digest, compiled=models.statically(function))


def train(mode, model, loss, *arguments, optimizer=None):
    """The case of whole steps."""
    return train_with(mode, model, loss, lambda: arguments, optimizer)


def train_with(mode, model, loss, batch, optimizer=None):
    """The case of whole steps, each on the arguments that ``batch()`` gives."""
    optimizer = (optimizer or optimizers.SGD(workloads.RATE)).setup(model)

    def update(*arguments):
        value = loss(model, *arguments)
        model.cleargrads()
        value.backward()
        optimizer.update()
        return value
    function = dy2static.to_static(update) if mode == "dy2static" else update
    return Case(lambda: function(*batch()), lambda value: [float(value.array)], checked=2, compiled=models.statically(function))


def cross_entropy(model, x, t):
    return F.softmax_cross_entropy(model(x), t)


def train_classifier(mode, model, data, cell):
    """The case of a deep network with batch normalization."""
    return train(mode, model, cross_entropy, data["x"], data["t"], optimizer=optimizers.SGD(workloads.RATES[cell]))


# ---- convolutions

class ConvNorm(Chain):
    def __init__(self, n_in, n_out, ksize, stride=1, groups=1):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(n_in, n_out, ksize, stride, ksize // 2, nobias=True, groups=groups)
            self.bn = L.BatchNormalization(n_out, eps=1e-5)

    def forward(self, x):
        return self.bn(self.conv(x))


class Bottleneck(Chain):
    def __init__(self, n_in, n_inner, stride, project):
        super().__init__()
        with self.init_scope():
            self.a = ConvNorm(n_in, n_inner, 1)
            self.b = ConvNorm(n_inner, n_inner, 3, stride)
            self.c = ConvNorm(n_inner, 4 * n_inner, 1)
            self.project = ConvNorm(n_in, 4 * n_inner, 1, stride) if project else None

    def forward(self, x):
        h = self.c(F.relu(self.b(F.relu(self.a(x)))))
        return F.relu(h + (x if self.project is None else self.project(x)))


class ResNet(Chain):
    def __init__(self, stages):
        super().__init__()
        with self.init_scope():
            n_in = stages[0][0]
            self.stem = ConvNorm(3, n_in, 7, 2)
            self.blocks = ChainList()
            for n_inner, count, stride in stages:
                for i in range(count):
                    self.blocks.append(Bottleneck(n_in, n_inner, stride if i == 0 else 1, i == 0))
                    n_in = 4 * n_inner
            self.out = L.Linear(n_in, 10)

    def forward(self, x):
        h = F.max_pooling_2d(F.relu(self.stem(x)), 3, 2, 1, cover_all=False)
        for block in self.blocks:
            h = block(h)
        return self.out(F.mean(h, axis=(2, 3)))


@CELLS.of("ResNet50.infer1 ResNet50.infer8", *INFERENCE)
@CELLS.of("ResNet50.train", *MODES)
def resnet(data, cell, mode):
    model = filled(ResNet(workloads.BOTTLENECKS_SMALL if data["small"] else workloads.BOTTLENECKS))
    return train_classifier(mode, model, data, cell) if cell.endswith("train") else infer(mode, model, data["x"])


class Inverted(Chain):
    def __init__(self, n_in, n_out, stride, expansion):
        super().__init__()
        inner = n_in * expansion
        self.adds = stride == 1 and n_in == n_out
        with self.init_scope():
            self.expand = ConvNorm(n_in, inner, 1) if expansion > 1 else None
            self.depthwise = ConvNorm(inner, inner, 3, stride, groups=inner)
            self.project = ConvNorm(inner, n_out, 1)

    def forward(self, x):
        h = x if self.expand is None else F.clipped_relu(self.expand(x), 6.0)
        h = self.project(F.clipped_relu(self.depthwise(h), 6.0))
        return x + h if self.adds else h


class MobileNet(Chain):
    def __init__(self, stages, n_first, n_last):
        super().__init__()
        with self.init_scope():
            self.stem = ConvNorm(3, n_first, 3, 2)
            self.blocks = ChainList()
            n_in = n_first
            for expansion, n_out, count, stride in stages:
                for i in range(count):
                    self.blocks.append(Inverted(n_in, n_out, stride if i == 0 else 1, expansion))
                    n_in = n_out
            self.head = ConvNorm(n_in, n_last, 1)
            self.out = L.Linear(n_last, 10)

    def forward(self, x):
        h = F.clipped_relu(self.stem(x), 6.0)
        for block in self.blocks:
            h = block(h)
        return self.out(F.mean(F.clipped_relu(self.head(h), 6.0), axis=(2, 3)))


@CELLS.of("MobileNet.infer", *INFERENCE)
@CELLS.of("MobileNet.train", *MODES)
def mobilenet(data, cell, mode):
    model = filled(MobileNet(workloads.INVERTED_SMALL, 8, 16) if data["small"] else MobileNet(workloads.INVERTED, 32, 1280))
    return train_classifier(mode, model, data, cell) if cell.endswith("train") else infer(mode, model, data["x"])


class Double(Chain):
    def __init__(self, n_in, n_out):
        super().__init__()
        with self.init_scope():
            self.a, self.b = ConvNorm(n_in, n_out, 3), ConvNorm(n_out, n_out, 3)

    def forward(self, x):
        return F.relu(self.b(F.relu(self.a(x))))


class UNet(Chain):
    def __init__(self, width):
        super().__init__()
        sizes = [width, 2 * width, 4 * width, 8 * width]
        with self.init_scope():
            self.down = ChainList(*[Double(a, b) for a, b in zip([3, *sizes], sizes)])
            self.up = ChainList(*[L.Deconvolution2D(2 * n, n, 2, 2) for n in sizes[-2::-1]])
            self.merge = ChainList(*[Double(2 * n, n) for n in sizes[-2::-1]])
            self.out = L.Convolution2D(width, 4, 1)

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pooling_2d(x, 2))
            kept.append(x)
        kept.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(F.concat([kept.pop(), up(x)]))
        return self.out(x)


@CELLS.of("UNet.train", *MODES)
def unet(data, cell, mode):
    return train(mode, filled(UNet(data["width"])), cross_entropy, data["x"], data["t"])


# ---- transformers

class Attention(Chain):
    def __init__(self, units, heads):
        super().__init__()
        self.heads = heads
        with self.init_scope():
            self.q, self.k, self.v, self.o = [L.Linear(units, units) for _ in range(4)]

    def split(self, x, n, length):
        return F.transpose(F.reshape(x, (n, length, self.heads, -1)), (0, 2, 1, 3))

    def forward(self, x, n, length, mask=None):
        q, k, v = (self.split(link(x), n, length) for link in (self.q, self.k, self.v))
        scores = F.matmul(q, k, transb=True) * (1.0 / np.sqrt(q.shape[3])).astype(np.float32)
        if mask is not None:
            scores = F.where(mask, scores, self.xp.full(scores.shape, -1e9, np.float32))
        context = F.matmul(F.softmax(scores, axis=3), v)
        return self.o(F.reshape(F.transpose(context, (0, 2, 1, 3)), x.shape))


def gelu(x):
    return 0.5 * x * (1 + F.erf(x * 0.70710678))


class Layer(Chain):
    """A layer of a transformer: normalised first (GPT) or last (BERT)."""

    def __init__(self, units, heads, first):
        super().__init__()
        self.first = first
        with self.init_scope():
            self.attention = Attention(units, heads)
            self.ln1, self.ln2 = L.LayerNormalization(units, eps=1e-5), L.LayerNormalization(units, eps=1e-5)
            self.f1, self.f2 = L.Linear(units, 4 * units), L.Linear(4 * units, units)

    def forward(self, x, n, length, mask=None):
        if self.first:
            x = x + self.attention(self.ln1(x), n, length, mask)
            return x + self.f2(gelu(self.f1(self.ln2(x))))
        x = self.ln1(x + self.attention(x, n, length, mask))
        return self.ln2(x + self.f2(gelu(self.f1(x))))


class GPT(Chain):
    def __init__(self, words, units, layers, heads, length):
        super().__init__()
        with self.init_scope():
            self.embed, self.places = L.EmbedID(words, units), chainer.Parameter(0, (length, units))
            self.layers = ChainList(*[Layer(units, heads, True) for _ in range(layers)])
            self.norm, self.out = L.LayerNormalization(units, eps=1e-5), L.Linear(units, words)

    def forward(self, x):
        n, length = x.shape
        h = self.embed(x)
        h = F.reshape(h + F.broadcast_to(self.places[:length], h.shape), (n * length, -1))
        xp = self.xp
        mask = xp.broadcast_to(xp.tril(xp.ones((length, length), bool)), (n, self.layers[0].attention.heads, length, length))
        for layer in self.layers:
            h = layer(h, n, length, mask)
        return self.out(self.norm(h))


@CELLS.of("GPT.infer", *INFERENCE)
@CELLS.of("GPT.train", *MODES)
def gpt(data, cell, mode):
    model = filled(GPT(data["words"], data["units"], data["layers"], data["heads"], data["x"].shape[1]))
    if cell.endswith("infer"):
        return infer(mode, model, data["x"])
    return train(mode, model, cross_entropy, data["x"], data["t"].ravel(), optimizer=optimizers.Adam())


class OneLayer(Chain):
    def __init__(self, units, heads):
        super().__init__()
        with self.init_scope():
            self.layer = Layer(units, heads, False)

    def forward(self, x):
        n, length, units = x.shape
        return F.reshape(self.layer(F.reshape(x, (n * length, units)), n, length), x.shape)


@CELLS.of("BERT.infer", *INFERENCE)
@CELLS.of("BERT.train", *MODES)
def bert(data, cell, mode):
    model = filled(OneLayer(data["units"], data["heads"]))
    if cell.endswith("infer"):
        return infer(mode, model, data["x"])
    return train(mode, model, models.squared_error, data["x"], data["t"])


# ---- sequences

class Tagger(Chain):
    def __init__(self, words, tags, units):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(words, units)
            self.lstm = L.NStepBiLSTM(1, units, units, 0.0)
            self.out = L.Linear(2 * units, tags)

    def forward(self, xs):
        ys = self.lstm(None, None, [self.embed(x) for x in xs])[2]
        return self.out(F.concat(ys, axis=0))


def tagging_loss(model, xs, ts):
    return F.softmax_cross_entropy(model(xs), F.concat(ts, axis=0))


def tagger_of(data):
    model = filled(Tagger(data["words"], data["tags"], data["units"]))
    for link, name in zip(model.lstm, ("forward", "backward")):
        parts = [np.split(part, 4) for part in workloads.recurrent(name, data["units"], data["units"])]
        for i, k in itertools.product(range(4), range(2)):
            getattr(link, f"w{4 * k + i}").array[...] = parts[k][i]
            getattr(link, f"b{4 * k + i}").array[...] = parts[2 + k][i]
    return model


@CELLS.of("Tagger.recurring Tagger.fresh", *MODES)
def tagger(data, cell, mode):
    if cell.endswith("fresh"):
        turns = itertools.count()
    else:
        turns = itertools.cycle(range(workloads.BATCHES))
    return train_with(mode, tagger_of(data), tagging_loss, lambda: workloads.sentences(data, next(turns)), optimizers.Adam())


# ---- graphs

class GraphNet(Chain):
    def __init__(self, units):
        super().__init__()
        with self.init_scope():
            self.messages = ChainList(*[L.Linear(2 * units, units) for _ in range(2)])
            self.updates = ChainList(*[L.Linear(2 * units, units) for _ in range(2)])

    def forward(self, x, source, target):
        for message, update in zip(self.messages, self.updates):
            m = F.relu(message(F.concat([x[source], x[target]])))
            total = F.scatter_add(np.zeros(x.shape, np.float32), target, m)
            x = x + F.relu(update(F.concat([x, total])))
        return x


@CELLS.of("Graph.infer Graph.train", *MODES)
def graph(data, cell, mode):
    model = filled(GraphNet(data["units"]))
    arguments = [data[name] for name in ("x", "source", "target")]
    if cell.endswith("infer"):
        return infer(mode, model, *arguments)
    return train(mode, model, lambda model, x, s, e, t: F.mean_squared_error(model(x, s, e), t), *arguments, data["t"])


# ---- decoding

class GRUDecoder(Chain):
    def __init__(self, words, units):
        super().__init__()
        with self.init_scope():
            self.embed, self.out = L.EmbedID(words, units), L.Linear(units, words)
            self.x, self.h = L.Linear(units, 3 * units), L.Linear(units, 3 * units)

    def forward(self, h):
        word, i, total = np.zeros(1, np.int32), 0, np.zeros((), np.float32)
        while i < workloads.STEPS:
            rx, zx, nx = F.split_axis(self.x(self.embed(word)), 3, axis=1)
            rh, zh, nh = F.split_axis(self.h(h), 3, axis=1)
            z = F.sigmoid(zx + zh)
            h = (1 - z) * F.tanh(nx + F.sigmoid(rx + rh) * nh) + z * h
            y = self.out(h)
            word = y.array.argmax(axis=1).astype(np.int32)
            total = total + F.max(y)
            i += 1
            if word[0] == 1:
                break
        return F.reshape(total, (1,))


class AttentionDecoder(Chain):
    def __init__(self, words, units, lists):
        super().__init__()
        self.units, self.lists = units, lists
        with self.init_scope():
            self.embed, self.out = L.EmbedID(words, units), L.Linear(units, words)
            self.q, self.k, self.v = [L.Linear(units, units) for _ in range(3)]

    def forward(self, h):
        return self.with_lists(h) if self.lists else self.with_arrays(h)

    def attend(self, h, keys, values):
        weights = F.softmax(F.matmul(self.q(h), keys, transb=True) * 0.1)
        return F.tanh(h + F.matmul(weights, values))

    def with_arrays(self, h):
        keys = np.zeros((workloads.STEPS, self.units), np.float32)
        values = np.zeros((workloads.STEPS, self.units), np.float32)
        word, i, total = np.zeros(1, np.int32), 0, np.zeros((), np.float32)
        while i < workloads.STEPS:
            h = h * 0.5 + self.embed(word)
            keys[i] = self.k(h).array[0]
            values[i] = self.v(h).array[0]
            seen = np.arange(workloads.STEPS) <= i
            scores = F.matmul(self.q(h), keys, transb=True) * 0.1
            scores = F.where(seen[None], scores, np.full((1, workloads.STEPS), -1e9, np.float32))
            h = F.tanh(h + F.matmul(F.softmax(scores), values))
            y = self.out(h)
            word = y.array.argmax(axis=1).astype(np.int32)
            total = total + F.max(y)
            i += 1
            if word[0] == 1:
                break
        return F.reshape(total, (1,))

    def with_lists(self, h):
        keys, values = [], []
        word, total = np.zeros(1, np.int32), np.zeros((), np.float32)
        for _ in range(workloads.STEPS):
            h = h * 0.5 + self.embed(word)
            keys.append(self.k(h))
            values.append(self.v(h))
            h = self.attend(h, F.concat(keys, axis=0), F.concat(values, axis=0))
            y = self.out(h)
            word = y.array.argmax(axis=1).astype(np.int32)
            total = total + F.max(y)
            if word[0] == 1:
                break
        return F.reshape(total, (1,))


@CELLS.of("Decode.gru Decode.cache Decode.lists", *MODES)
def decode(data, cell, mode):
    sizes = data["words"], data["units"]
    model = GRUDecoder(*sizes) if cell.endswith("gru") else AttentionDecoder(*sizes, cell.endswith("lists"))
    return infer(mode, filled(model), data["start"])


# ---- elements

def ten(x, y):
    h = F.tanh(x * y + 0.5)
    return F.sum(F.sigmoid(h - y) * F.exp(-(x * x)) + F.sqrt(F.absolute(h) + 1))


@CELLS.of("Elements.infer Elements.grad", *MODES)
def elements(data, cell, mode):
    function = dy2static.to_static(ten) if mode == "dy2static" else ten
    if cell.endswith("infer"):
        return infer(mode, ten, data["x"], data["y"])._replace(check=lambda y: [float(y.array)])
    x, y = Variable(data["x"]), Variable(data["y"])

    def step():
        x.cleargrad()
        y.cleargrad()
        value = function(x, y)
        value.backward()
        return value

    def check(value):
        return [float(value.array), models.norm([x.grad]), models.norm([y.grad])]
    return Case(step, check, compiled=models.statically(function))
