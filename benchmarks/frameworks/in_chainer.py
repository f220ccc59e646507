"""The workloads as Chainer programs: eager, with `static_graph`, and compiled by dy2static.

The three differ in one decorator.  dy2static compiles the model where only its output is wanted and the model with its
loss else; ``backward()`` and the optimizer run as they always do.
"""
import dy2static
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import Chain, ChainList, Variable
from chainer.graph_optimizations.static_graph import static_graph

from cases import Case, Cells
from workloads import LONGEST, RATE, RATE_OF_CNN, RATE_OF_MAML, SECOND_NORM, TOLERANCE, iterations_of, residual_blocks, stages_of

VERSION = f"Chainer {chainer.__version__}, NumPy {np.__version__}"
CELLS = Cells()
ANY = "eager", "dy2static"
SIMPLE = (*ANY, "static_graph")             # one trace serves all calls

CELLS.cannot_do("W3.infer W3.varlen W3.grad W3.train", "static_graph", "records one trace; the length of the loop would be frozen")
CELLS.cannot_do("W6.grad", "static_graph", "assignment destination is read-only")
CELLS.cannot_do("W7.infer W7.grad W8.infer W9.lbfgs", "static_graph", "records one trace of control flow that depends on data")
CELLS.cannot_do("W10.grad W10.train", "static_graph", "no gradients of second order")


# ---- how a model becomes a case

def supervised(data, cell, mode, model, loss, rate=RATE, inputs=("x",)):
    """The output of the model, or the loss (of the model, the inputs and the targets) with its gradients and update."""
    arguments = [data[name] for name in inputs]
    if mode == "static_graph":
        model.__class__ = type(model.__class__.__name__, (type(model),), {"forward": static_graph(type(model).forward)})
    if not cell.endswith((".grad", ".train")):
        return inference(mode, model, arguments)
    if mode == "dy2static":
        loss = dy2static.to_static(loss)
    optimizer = chainer.optimizers.SGD(rate).setup(model)

    def step():
        value = loss(model, *arguments, *([data["t"]] if "t" in data else []))
        model.cleargrads()
        value.backward()
        if cell.endswith(".train"):
            optimizer.update()
        return value

    def check(value):
        return [float(value.array), norm([p.grad for p in model.params()])]
    return Case(step, check, checked=4 if cell.endswith(".train") else 1, compiled=statically(loss))


def inference(mode, function, arguments, check=None):
    """What the function gives for the arguments, without a graph for gradients."""
    if mode == "dy2static":
        function = dy2static.to_static(function)

    def step():
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return function(*arguments)
    return Case(step, check or digest, compiled=statically(function))


def statically(function):
    """The part of a compiled function or model that counts captures, if it is one."""
    function = type(function).forward if isinstance(function, Chain) and hasattr(type(function), "forward") else function
    return function if hasattr(function, "cache_info") else None


def digest(y):
    total = y.array.astype(np.float64)
    return [float(total.sum()), float(abs(total).sum())]


def norm(gradients):
    return sum(float((g.astype(np.float64) ** 2).sum()) for g in gradients) ** 0.5


def filled(model, data):
    """The model with the weights of that name: /l1/W is data["l1.W"]; running statistics likewise."""
    for path, parameter in model.namedparams():
        parameter.array[...] = data[name_of(path)]
    for path, link in model.namedlinks():
        if isinstance(link, L.BatchNormalization):
            link.avg_mean[...], link.avg_var[...] = data[name_of(path) + ".mean"], data[name_of(path) + ".var"]
    return model


def name_of(path):
    """The name of the weights at that path; a convolution and its normalisation share one."""
    return ".".join(part for part in path.strip("/").split("/") if part not in ("c", "bn"))


# ---- W1, W2

class MLP(Chain):
    def __init__(self, activation, n_in, n_units, n_out):
        super().__init__()
        self.activation = activation
        with self.init_scope():
            self.l1 = L.Linear(n_in, n_units)
            self.l2 = L.Linear(n_units, n_units)
            self.l3 = L.Linear(n_units, n_out)

    def forward(self, x):
        h = self.activation(self.l1(x))
        h = self.activation(self.l2(h))
        return self.l3(h)


def cross_entropy(model, x, t):
    return F.softmax_cross_entropy(model(x), t)


def mlp_of(data, activation):
    return filled(MLP(activation, data["x"].shape[1], *data["l1.b"].shape, *data["l3.b"].shape), data)


@CELLS.of("W1.infer W1.grad W1.train W2.infer W2.grad W2.train", *SIMPLE)
def mlp(data, cell, mode):
    return supervised(data, cell, mode, mlp_of(data, F.relu if cell.startswith("W1.") else F.tanh), cross_entropy)


# ---- W3

class RNN(Chain):
    """A loop as long as the longest example; the state of an example stays when the example has ended."""

    def __init__(self, n_units):
        super().__init__()
        with self.init_scope():
            self.wx = L.Linear(n_units, n_units)
            self.wh = L.Linear(n_units, n_units, nobias=True)
            self.out = L.Linear(n_units, 10)

    def forward(self, x, lengths):
        h = self.xp.zeros(x.shape[1:], dtype=x.dtype)
        zero = self.xp.zeros(x.shape[1:], dtype=x.dtype)
        longest = int(lengths.max())
        states = []
        i = 0
        while i < longest:
            new = F.tanh(self.wx(x[i]) + self.wh(h))
            mask = self.xp.broadcast_to((i < lengths)[:, None], new.shape)
            h = F.where(mask, new, h)
            states.append(F.where(mask, new, zero))
            i += 1
        return self.out(h), F.stack(states)


def rnn_loss(model, x, lengths, t):
    y, states = model(x, lengths)
    return F.softmax_cross_entropy(y, t) + 0.5 * F.sum(states * states) / float(x.size)


@CELLS.of("W3.infer W3.varlen W3.grad W3.train", *ANY)
def rnn(data, cell, mode):
    model = filled(RNN(data["x"].shape[2]), data)
    if cell != "W3.varlen":
        case = supervised(data, cell, mode, model, rnn_loss, inputs=("x", "lengths"))
        return case if cell != "W3.infer" else case._replace(check=digest_of_pair)
    lengths = list(data["varlen"])

    def turn():
        lengths.append(lengths.pop(0))
        return function(data["x"], lengths[-1])
    function = dy2static.to_static(model) if mode == "dy2static" else model
    return inference("eager", turn, (), digest_of_pair)._replace(checked=len(lengths), compiled=statically(function))


def digest_of_pair(pair):
    return digest(pair[0]) + digest(pair[1])


# ---- W4

class LanguageModel(Chain):
    def __init__(self, n_words, n_units):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_words, n_units)
            self.l1 = L.LSTM(n_units, n_units)
            self.l2 = L.LSTM(n_units, n_units)
            self.l3 = L.Linear(n_units, n_words)

    def forward(self, words):
        self.l1.reset_state()
        self.l2.reset_state()
        outputs = []
        for word in words:
            h = self.l1(self.embed(word))
            h = self.l2(h)
            outputs.append(self.l3(h))
        return outputs


def language_loss(model, words, targets):
    loss = 0
    for y, t in zip(model(words), targets):
        loss += F.softmax_cross_entropy(y, t)
    return loss / len(targets)


def language_model_of(data):
    n_words, n_units = data["embed.W"].shape
    model = LanguageModel(n_words, n_units)
    order = np.arange(4 * n_units).reshape(4, n_units).T.ravel()        # Chainer's gates of a unit are side by side
    weights = {"embed.W": data["embed.W"], "l3.W": data["l3.W"], "l3.b": data["l3.b"]}
    for layer in ("l1", "l2"):
        weights[layer + ".upward.W"] = data[layer + ".x.W"][order]
        weights[layer + ".upward.b"] = data[layer + ".x.b"][order]
        weights[layer + ".lateral.W"] = data[layer + ".h.W"][order]
    return filled(model, weights)


@CELLS.of("W4.infer W4.grad W4.train", *SIMPLE)
def language_model(data, cell, mode):
    case = supervised(data, cell, mode, language_model_of(data), language_loss)
    return case if cell != "W4.infer" else case._replace(check=lambda ys: digest(F.stack(ys)))


# ---- W5

class Normalised(Chain):
    """A convolution with batch normalisation and, if wanted, relu."""

    def __init__(self, n_in, n_out, size=3, stride=1, pad=1, relu=True):
        super().__init__()
        self.relu = relu
        with self.init_scope():
            self.c = L.Convolution2D(n_in, n_out, size, stride, pad, nobias=True)
            self.bn = L.BatchNormalization(n_out, eps=1e-5)

    def forward(self, x):
        h = self.bn(self.c(x))
        return F.relu(h) if self.relu else h


class VGG(Chain):
    def __init__(self, width, n_flat, n_out):
        super().__init__()
        with self.init_scope():
            self.c1, self.c2 = Normalised(3, width), Normalised(width, width)
            self.c3, self.c4 = Normalised(width, 2 * width), Normalised(2 * width, 2 * width)
            self.f1, self.f2 = L.Linear(n_flat, 4 * width), L.Linear(4 * width, n_out)

    def forward(self, x):
        h = self.c2(self.c1(x))
        h = F.max_pooling_2d(h, 2, 2)
        h = self.c4(self.c3(h))
        h = F.max_pooling_2d(h, 2, 2)
        return self.f2(F.relu(self.f1(h)))


@CELLS.of("W5.infer W5.grad W5.train", *SIMPLE)
def vgg(data, cell, mode):
    model = filled(VGG(len(data["c1.W"]), data["f1.W"].shape[1], len(data["f2.W"])), data)
    return supervised(data, cell, mode, model, cross_entropy, RATE_OF_CNN)


class Residual(Chain):
    def __init__(self, n_in, n_out, stride):
        super().__init__()
        with self.init_scope():
            self.c1 = Normalised(n_in, n_out, 3, stride, 1)
            self.c2 = Normalised(n_out, n_out, 3, 1, 1, relu=False)
            self.sc = Normalised(n_in, n_out, 1, stride, 0, relu=False) if n_in != n_out else None

    def forward(self, x):
        h = self.c2(self.c1(x))
        return F.relu(h + (self.sc(x) if self.sc is not None else x))


class ResNet(Chain):
    def __init__(self, stages):
        super().__init__()
        with self.init_scope():
            self.stem = Normalised(3, stages[0][0])
            self.blocks = ChainList(*[Residual(*block) for _, *block in residual_blocks(stages)])
            self.fc = L.Linear(stages[-1][0], 10)

    def forward(self, x):
        h = self.stem(x)
        for block in self.blocks:
            h = block(h)
        h = F.average_pooling_2d(h, h.shape[2:])
        return self.fc(h)


def resnet_of(data):
    stages = stages_of(data)
    numbers = {name: f"blocks.{i}" for i, (name, *_) in enumerate(residual_blocks(stages))}
    weights = {".".join([numbers.get(name.split(".")[0], name.split(".")[0]), *name.split(".")[1:]]): a for name, a in data.items()}
    return filled(ResNet(stages), weights)


@CELLS.of("W5.res1 W5.res32", *SIMPLE)
def resnet(data, cell, mode):
    x = data["x"][:1].copy() if cell == "W5.res1" else data["x"]
    return supervised({**data, "x": x}, cell, mode, resnet_of(data), None)


# ---- W6

def gelu(x):
    return 0.5 * x * (1 + F.tanh(0.7978845608 * (x + 0.044715 * (x * x * x))))


class GeluNorm(Chain):
    def __init__(self, n_units):
        super().__init__()
        with self.init_scope():
            self.w, self.b = chainer.Parameter(1, (n_units,)), chainer.Parameter(0, (n_units,))
            self.ln = L.LayerNormalization(n_units, eps=1e-5)

    def forward(self, x):
        h = x * F.broadcast_to(self.w, x.shape) + F.broadcast_to(self.b, x.shape)
        h = self.ln(gelu(h))
        return F.sum(F.dropout(h, 0.1))


@CELLS.of("W6.infer", *SIMPLE)
@CELLS.of("W6.grad", *ANY)
def gelu_norm(data, cell, mode):
    model = GeluNorm(len(data["w"]))
    filled(model, {**data, "ln.gamma": data["gamma"], "ln.beta": data["beta"]})
    x = Variable(data["x"])
    if cell == "W6.infer":
        return supervised({"x": x}, cell, mode, model, None)._replace(check=lambda y: [float(y.array)])
    function = dy2static.to_static(model) if mode == "dy2static" else model

    def step():
        with chainer.using_config("train", False):
            y = function(x)
            model.cleargrads()
            x.cleargrad()
            y.backward()
        return y

    def check(y):
        return [float(y.array), norm([x.grad]), norm([model.w.grad, model.b.grad]), norm([model.ln.gamma.grad, model.ln.beta.grad])]
    return Case(step, check, compiled=statically(function))


# ---- W7

def newton(a, b, x, c):
    """The weighted sum of the solutions of x**3 + a * x = b, and how many steps they took."""
    err = 1e9
    steps = 0
    while err > TOLERANCE:
        f = x * x * x + a * x - b
        df = 3.0 * x * x + a
        d = f / df
        err = float(abs(d.array).max())
        if err > 0.5:
            d = d * (0.5 / err)
        else:
            d = 0.25 * d
        x = x - d
        steps += 1
    return F.sum(x * c), steps


@CELLS.of("W7.infer W7.grad", *ANY)
def newton_iteration(data, cell, mode):
    a, b, x, c = Variable(data["a"]), Variable(data["b"]), Variable(data["x"]), data["c"]
    if cell == "W7.infer":
        return inference(mode, newton, (a, b, x, c), lambda found: [float(found[0].array), int(found[1])])
    function = dy2static.to_static(newton) if mode == "dy2static" else newton

    def step():
        a.cleargrad()
        b.cleargrad()
        y, steps = function(a, b, x, c)
        y.backward()
        return y, steps

    def check(found):
        return [float(found[0].array), int(found[1]), norm([a.grad]), norm([b.grad])]
    return Case(step, check, compiled=statically(function))


# ---- W8

class Decoder(Chain):
    """Beam search: ends when every beam has said word 0."""

    def __init__(self, n_words, n_units):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_words, n_units)
            self.gru = L.StatelessGRU(n_units, n_units)
            self.out = L.Linear(n_units, n_words)

    def forward(self, h):
        xp, beams, n_words = self.xp, 4, self.out.W.shape[0]
        h = F.broadcast_to(h, (beams, h.shape[1]))
        word = xp.ones((beams,), dtype=np.int32)
        score = xp.array([0, -1e9, -1e9, -1e9], dtype=np.float32)
        ended = xp.zeros((beams,), dtype=bool)
        after_end = xp.full((1, n_words), -1e9, dtype=np.float32)
        after_end[0, 0] = 0
        found = xp.zeros((beams, LONGEST), dtype=np.int32)
        i = 0
        while i < LONGEST:
            h = self.gru(h, self.embed(word))
            likely = F.log_softmax(self.out(h))
            likely = xp.where(ended[:, None], after_end, likely.array)
            total = (score[:, None] + likely).reshape(-1)
            best = xp.argpartition(-total, beams)[:beams]
            best = best[xp.argsort(-total[best])]
            parent = best // n_words
            word = (best % n_words).astype(np.int32)
            score = total[best]
            h = h[parent]
            found = found[parent]
            found[:, i] = word
            ended = ended[parent] | (word == 0)
            i += 1
            if ended.all():
                break
        return score, found, i


@CELLS.of("W8.infer", *ANY)
def beam_search(data, cell, mode):
    model = filled(Decoder(*data["embed.W"].shape), data)
    return inference(mode, model, (data["x"],), lambda r: [float(r[0][0]), float(r[0][-1]), int(r[1].sum()), int(r[2])])


# ---- W9

def logistic_loss(w, x, t):
    margin = F.matmul(x, F.expand_dims(w, 1))[:, 0] * t
    return F.average(F.softplus(-margin)) + 0.5 * SECOND_NORM * F.sum(w * w)


def lbfgs(x, t, iterations, memory=10):
    """The loss and the weights after so many iterations of L-BFGS with backtracking."""
    w = np.zeros(x.shape[1], dtype=np.float32)

    def with_gradient(w):
        w = Variable(w)
        loss = logistic_loss(w, x, t)
        loss.backward()
        return float(loss.array), w.grad

    def alone(w):
        with chainer.no_backprop_mode():
            return float(logistic_loss(Variable(w), x, t).array)

    f, g = with_gradient(w)
    history = []
    for _ in range(iterations):
        q = g.copy()
        factors = []
        for s, y, rho in reversed(history):
            a = rho * s.dot(q)
            q -= a * y
            factors.append(a)
        if history:
            s, y, rho = history[-1]
            q *= s.dot(y) / np.maximum(y.dot(y), np.float32(1e-20))
        else:
            q *= 1.0 / np.sqrt(g.dot(g))
        for (s, y, rho), a in zip(history, reversed(factors)):
            q += (a - rho * y.dot(q)) * s
        p = -q
        slope = float(g.dot(p))
        length = 1.0
        tried = alone(w + np.float32(length) * p)
        halved = 0
        while tried > f + 1e-4 * length * slope and halved < 20:
            length *= 0.5
            tried = alone(w + np.float32(length) * p)
            halved += 1
        new = w + np.float32(length) * p
        f, g_new = with_gradient(new)
        s, y = new - w, g_new - g
        sy = s.dot(y)
        history.append((s, y, np.float32(1) / sy if sy > 1e-10 else np.float32(0)))
        if len(history) > memory:
            history.pop(0)
        w, g = new, g_new
    return f, w


@CELLS.of("W9.lbfgs", *ANY)
def minimisation(data, cell, mode):
    function = dy2static.to_static(lbfgs) if mode == "dy2static" else lbfgs
    x, t, iterations = data["x"], data["t"], iterations_of(data["x"])
    return Case(lambda: function(x, t, iterations), lambda found: [float(found[0]), float(np.abs(found[1]).sum())],
                compiled=statically(function))


# ---- W10

class SineMLP(Chain):
    def __init__(self, n_units):
        super().__init__()
        with self.init_scope():
            self.l1, self.l2, self.l3 = L.Linear(1, n_units), L.Linear(n_units, n_units), L.Linear(n_units, 1)


def apply_mlp(p, x):
    h = F.relu(F.linear(x, p[0], p[1]))
    h = F.relu(F.linear(h, p[2], p[3]))
    return F.linear(h, p[4], p[5])


def maml_loss(model, xs, ys, xq, yq, steps=1):
    """The mean loss of all tasks after so many steps of gradient descent on each."""
    p = [model.l1.W, model.l1.b, model.l2.W, model.l2.b, model.l3.W, model.l3.b]
    total = 0
    for i in range(xs.shape[0]):
        moved = p
        for _ in range(steps):
            loss = F.mean_squared_error(apply_mlp(moved, xs[i]), ys[i])
            gradients = chainer.grad([loss], moved, enable_double_backprop=True)
            moved = [a - 0.01 * g for a, g in zip(moved, gradients)]
        total += F.mean_squared_error(apply_mlp(moved, xq[i]), yq[i])
    return total / xs.shape[0]


@CELLS.of("W10.grad W10.train", *ANY)
def maml(data, cell, mode):
    model = filled(SineMLP(len(data["l1.b"])), data)
    return supervised(data, cell, mode, model, maml_loss, RATE_OF_MAML, inputs=("xs", "ys", "xq", "yq"))


# ---- W11

class Block(Chain):
    def __init__(self, n_units, n_inner, heads=4):
        super().__init__()
        self.heads = heads
        with self.init_scope():
            self.ln1, self.ln2 = L.LayerNormalization(n_units, eps=1e-5), L.LayerNormalization(n_units, eps=1e-5)
            self.q, self.k, self.v, self.o = [L.Linear(n_units, n_units) for _ in range(4)]
            self.f1, self.f2 = L.Linear(n_units, n_inner), L.Linear(n_inner, n_units)

    def split(self, x, n, length):
        return F.transpose(F.reshape(x, (n, length, self.heads, x.shape[1] // self.heads)), (0, 2, 1, 3))

    def forward(self, x):
        n, length, units = x.shape
        x = F.reshape(x, (n * length, units))
        h = self.ln1(x)
        q, k, v = (self.split(link(h), n, length) for link in (self.q, self.k, self.v))
        weights = F.matmul(q, k, transb=True) * (1.0 / np.sqrt(units // self.heads)).astype(np.float32)
        weights = F.softmax(weights, axis=3)
        c = F.reshape(F.transpose(F.matmul(weights, v), (0, 2, 1, 3)), (n * length, units))
        x = x + self.o(c)
        x = x + self.f2(F.relu(self.f1(self.ln2(x))))
        return F.reshape(x, (n, length, units))


def squared_error(model, x, t):
    return F.mean_squared_error(model(x), t)


@CELLS.of("W11.infer W11.grad W11.train", *SIMPLE)
def transformer(data, cell, mode):
    model = filled(Block(data["x"].shape[2], len(data["f1.b"])), data)
    return supervised(data, cell, mode, model, squared_error)


# ---- W12

def add_one(x):
    return x + 1


class AddOne(Chain):
    def forward(self, x):
        return x + 1


@CELLS.of("W12.call", *SIMPLE)
def call(data, cell, mode):
    if mode == "static_graph":
        return supervised({"x": Variable(data["x"])}, cell, mode, AddOne(), None)
    x = Variable(data["x"], requires_grad=False)        # no graph is made, as of the arrays of the others
    function = dy2static.to_static(add_one) if mode == "dy2static" else add_one
    return Case(lambda: function(x), digest, compiled=statically(function))
