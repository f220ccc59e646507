"""The workloads in PyTorch: eager, and with torch.compile (of the model, or of the model with its loss)."""
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from cases import Case, Cells
from workloads import LONGEST, RATE, RATE_OF_CNN, RATE_OF_MAML, SECOND_NORM, TOLERANCE, iterations_of, residual_blocks, stages_of

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
VERSION = f"PyTorch {torch.__version__}"
CELLS = Cells()
MODES = "eager", "compile"


def tensor(array):
    """The array on the default device; integers are those of indices."""
    made = torch.tensor(array)
    return made.long() if made.dtype == torch.int32 else made


def compiled(function, mode):
    if mode.startswith("reduce_overhead"):
        return torch.compile(function, mode="reduce-overhead")
    return torch.compile(function) if mode.startswith("compile") else function


def filled(model, data):
    """The model with the weights of that name: l1.weight is data["l1.W"]."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(data[name.replace(".weight", ".W").replace(".bias", ".b")]))
    return model


def supervised(data, cell, mode, model, loss, rate=RATE, inputs=("x",)):
    """The output of the model, or the loss (of the model, the inputs and the targets) with its gradients and update."""
    arguments = [tensor(data[name]) for name in inputs]
    if not cell.endswith((".grad", ".train")):
        return inference(mode, model.eval(), arguments)
    if "t" in data:
        arguments.append(tensor(data["t"]))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    function = compiled(lambda *arguments: loss(model, *arguments), mode)

    def step():
        optimizer.zero_grad()
        value = function(*arguments)
        value.backward()
        if cell.endswith(".train"):
            optimizer.step()
        return value

    def check(value):
        return [value.item(), norm([p.grad for p in model.parameters() if p.grad is not None])]
    return Case(step, check, checked=4 if cell.endswith(".train") else 1)


def inference(mode, function, arguments, check=None):
    function = compiled(function, mode)

    def step():
        with torch.no_grad():
            return function(*arguments)
    return Case(step, check or digest)


def digest(y):
    total = y.detach().cpu().numpy().astype(np.float64)
    return [total.sum(), np.abs(total).sum()]


def norm(gradients):
    return float(np.sqrt(sum((g.double() ** 2).sum().item() for g in gradients)))


# ---- W1, W2

class MLP(nn.Module):
    def __init__(self, activation, n_in, n_units, n_out):
        super().__init__()
        self.activation = activation
        self.l1, self.l2, self.l3 = nn.Linear(n_in, n_units), nn.Linear(n_units, n_units), nn.Linear(n_units, n_out)

    def forward(self, x):
        return self.l3(self.activation(self.l2(self.activation(self.l1(x)))))


def cross_entropy(model, x, t):
    return F.cross_entropy(model(x), t)


@CELLS.of("W1.infer W1.grad W1.train W2.infer W2.grad W2.train", *MODES)
def mlp(data, cell, mode):
    activation = F.relu if cell.startswith("W1.") else torch.tanh
    model = filled(MLP(activation, data["x"].shape[1], *data["l1.b"].shape, *data["l3.b"].shape), data)
    return supervised(data, cell, mode, model, cross_entropy)


# ---- W3

class RNN(nn.Module):
    def __init__(self, n_units):
        super().__init__()
        self.wx, self.wh, self.out = nn.Linear(n_units, n_units), nn.Linear(n_units, n_units, bias=False), nn.Linear(n_units, 10)

    def forward(self, x, lengths):
        h = torch.zeros_like(x[0])
        zero = torch.zeros_like(x[0])
        longest = int(lengths.max())
        states = []
        i = 0
        while i < longest:
            new = torch.tanh(self.wx(x[i]) + self.wh(h))
            mask = (i < lengths)[:, None]
            h = torch.where(mask, new, h)
            states.append(torch.where(mask, new, zero))
            i += 1
        return self.out(h), torch.stack(states)


def rnn_loss(model, x, lengths, t):
    y, states = model(x, lengths)
    return F.cross_entropy(y, t) + 0.5 * (states * states).sum() / float(x.numel())


@CELLS.of("W3.infer W3.varlen W3.grad W3.train", *MODES)
def rnn(data, cell, mode):
    model = filled(RNN(data["x"].shape[2]), data)
    if cell != "W3.varlen":
        case = supervised(data, cell, mode, model, rnn_loss, inputs=("x", "lengths"))
        return case if cell != "W3.infer" else case._replace(check=digest_of_pair)
    function, x, lengths = compiled(model.eval(), mode), tensor(data["x"]), [tensor(row) for row in data["varlen"]]

    def turn():
        lengths.append(lengths.pop(0))
        return function(x, lengths[-1])
    return inference("eager", turn, (), digest_of_pair)._replace(checked=len(lengths))


def digest_of_pair(pair):
    return digest(pair[0]) + digest(pair[1])


# ---- W4

class LanguageModel(nn.Module):
    """With the fused `nn.LSTM`."""

    def __init__(self, data):
        super().__init__()
        n_words, n_units = data["embed.W"].shape
        self.embed, self.lstm, self.l3 = nn.Embedding(n_words, n_units), nn.LSTM(n_units, n_units, 2), nn.Linear(n_units, n_words)
        order = np.arange(4 * n_units).reshape(4, n_units)[[1, 2, 0, 3]].ravel()       # input, forget, candidate, output
        weights = {"embed.W": data["embed.W"], "l3.W": data["l3.W"], "l3.b": data["l3.b"]}
        for i, layer in enumerate(("l1", "l2")):
            weights[f"lstm.W_ih_l{i}"] = data[layer + ".x.W"][order]
            weights[f"lstm.b_ih_l{i}"] = data[layer + ".x.b"][order]
            weights[f"lstm.W_hh_l{i}"] = data[layer + ".h.W"][order]
            weights[f"lstm.b_hh_l{i}"] = 0 * data[layer + ".x.b"]
        filled(self, weights)
        for i in range(2):
            getattr(self.lstm, f"bias_hh_l{i}").requires_grad_(False)

    def forward(self, words):
        h, _ = self.lstm(self.embed(words))
        return self.l3(h)


class LanguageLoop(nn.Module):
    """The same as a loop over cells that are written out."""

    def __init__(self, data):
        super().__init__()
        n_words, n_units = data["embed.W"].shape
        self.embed, self.l3 = nn.Embedding(n_words, n_units), nn.Linear(n_units, n_words)
        self.l1, self.l2 = [nn.ModuleDict({"x": nn.Linear(n_units, 4 * n_units), "h": nn.Linear(n_units, 4 * n_units, bias=False)})
                            for _ in range(2)]
        filled(self, data)

    def cell(self, layer, x, h, c):
        g, i, f, o = (layer["x"](x) + layer["h"](h)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    def forward(self, words):
        h1 = c1 = h2 = c2 = self.embed.weight.new_zeros(words.shape[1], self.embed.weight.shape[1])
        outputs = []
        for word in words:
            h1, c1 = self.cell(self.l1, self.embed(word), h1, c1)
            h2, c2 = self.cell(self.l2, h1, h2, c2)
            outputs.append(self.l3(h2))
        return torch.stack(outputs)


def language_loss(model, x, t):
    return F.cross_entropy(model(x).flatten(0, 1), t.flatten())


@CELLS.of("W4.infer W4.grad W4.train", *MODES, "eager_loop", "compile_loop")
def language_model(data, cell, mode):
    model = LanguageLoop(data) if mode.endswith("loop") else LanguageModel(data)
    return supervised(data, cell, mode, model, language_loss)


# ---- W5

class Normalised(nn.Module):
    def __init__(self, data, name, stride=1, pad=1, relu=True):
        super().__init__()
        n_out, n_in, size, _ = data[name + ".W"].shape
        self.c, self.bn, self.relu = nn.Conv2d(n_in, n_out, size, stride, pad, bias=False), nn.BatchNorm2d(n_out, eps=1e-5), relu
        with torch.no_grad():
            self.c.weight.copy_(tensor(data[name + ".W"]))
            self.bn.weight.copy_(tensor(data[name + ".gamma"]))
            self.bn.bias.copy_(tensor(data[name + ".beta"]))
            self.bn.running_mean.copy_(tensor(data[name + ".mean"]))
            self.bn.running_var.copy_(tensor(data[name + ".var"]))

    def forward(self, x):
        h = self.bn(self.c(x))
        return F.relu(h) if self.relu else h


def linear(data, name):
    n_out, n_in = data[name + ".W"].shape
    made = nn.Linear(n_in, n_out)
    with torch.no_grad():
        made.weight.copy_(tensor(data[name + ".W"]))
        made.bias.copy_(tensor(data[name + ".b"]))
    return made


class VGG(nn.Module):
    def __init__(self, data):
        super().__init__()
        self.c1, self.c2, self.c3, self.c4 = (Normalised(data, f"c{i}") for i in (1, 2, 3, 4))
        self.f1, self.f2 = linear(data, "f1"), linear(data, "f2")

    def forward(self, x):
        h = F.max_pool2d(self.c2(self.c1(x)), 2)
        h = F.max_pool2d(self.c4(self.c3(h)), 2)
        return self.f2(F.relu(self.f1(h.flatten(1))))


@CELLS.of("W5.infer W5.grad W5.train", *MODES)
def vgg(data, cell, mode):
    return supervised(data, cell, mode, VGG(data), cross_entropy, RATE_OF_CNN)


class Residual(nn.Module):
    def __init__(self, data, name, stride):
        super().__init__()
        self.c1, self.c2 = Normalised(data, name + ".c1", stride), Normalised(data, name + ".c2", relu=False)
        self.sc = Normalised(data, name + ".sc", stride, 0, relu=False) if name + ".sc.W" in data else None

    def forward(self, x):
        h = self.c2(self.c1(x))
        return F.relu(h + (self.sc(x) if self.sc is not None else x))


class ResNet(nn.Module):
    def __init__(self, data):
        super().__init__()
        self.stem, self.fc = Normalised(data, "stem"), linear(data, "fc")
        self.blocks = nn.Sequential(*[Residual(data, name, stride) for name, _, _, stride in residual_blocks(stages_of(data))])

    def forward(self, x):
        return self.fc(self.blocks(self.stem(x)).mean((2, 3)))


@CELLS.of("W5.res1 W5.res32", *MODES)
def resnet(data, cell, mode):
    x = data["x"][:1] if cell == "W5.res1" else data["x"]
    return supervised({**data, "x": x}, cell, mode, ResNet(data), None)


# ---- W6

def gelu_norm(x, w, b, gamma, beta):
    h = F.gelu(x * w + b, approximate="tanh")
    h = F.layer_norm(h, (x.shape[1],), gamma, beta, 1e-5)
    return F.dropout(h, 0.1, training=False).sum()


@CELLS.of("W6.infer W6.grad", *MODES)
def gelu_and_norm(data, cell, mode):
    arguments = [tensor(data[name]) for name in ("x", "w", "b", "gamma", "beta")]
    if cell == "W6.infer":
        return inference(mode, gelu_norm, arguments, lambda y: [y.item()])
    function = compiled(gelu_norm, mode)
    for a in arguments:
        a.requires_grad_()

    def step():
        for a in arguments:
            a.grad = None
        y = function(*arguments)
        y.backward()
        return y
    return Case(step, lambda y: [y.item(), *(norm([a.grad for a in group]) for group in
                                             (arguments[:1], arguments[1:3], arguments[3:]))])


# ---- W7

def newton(a, b, x, c):
    err = 1e9
    steps = 0
    while err > TOLERANCE:
        f = x * x * x + a * x - b
        df = 3.0 * x * x + a
        d = f / df
        err = d.detach().abs().max().item()
        if err > 0.5:
            d = d * (0.5 / err)
        else:
            d = 0.25 * d
        x = x - d
        steps += 1
    return (x * c).sum(), steps


def newton_operator(a, b, x, c):
    """With torch's operator for loops on data: written again by hand, and without a gradient."""
    from torch._higher_order_ops.while_loop import while_loop

    def body(x, err, steps):
        d = (x * x * x + a * x - b) / (3.0 * x * x + a)
        err = d.abs().max()
        d = torch.where(err > 0.5, d * (0.5 / err), 0.25 * d)
        return x - d, err, steps + 1
    x, _, steps = while_loop(lambda x, err, steps: err > TOLERANCE, body, (x, torch.tensor(1e9), torch.tensor(0)))
    return (x * c).sum(), steps


@CELLS.of("W7.infer", *MODES, "compile_operator")
@CELLS.of("W7.grad", *MODES)
def newton_iteration(data, cell, mode):
    arguments = [tensor(data[name]) for name in ("a", "b", "x", "c")]
    function = newton_operator if mode == "compile_operator" else newton
    if cell == "W7.infer":
        return inference(mode, function, arguments, lambda found: [found[0].item(), int(found[1])])
    function, (a, b) = compiled(function, mode), arguments[:2]
    a.requires_grad_()
    b.requires_grad_()

    def step():
        a.grad = b.grad = None
        y, steps = function(*arguments)
        y.backward()
        return y, steps
    return Case(step, lambda found: [found[0].item(), int(found[1]), norm([a.grad]), norm([b.grad])])


# ---- W8

class Decoder(nn.Module):
    def __init__(self, data):
        super().__init__()
        self.embed = nn.Embedding(*data["embed.W"].shape)
        self.x, self.gates, self.inner = (linear(joined(data, names), "joined") for names in (
            ("W_r", "W_z", "W"), ("U_r", "U_z"), ("U",)))
        self.out = linear(data, "out")
        with torch.no_grad():
            self.embed.weight.copy_(tensor(data["embed.W"]))

    def gru(self, h, x):
        x_r, x_z, x_h = self.x(x).chunk(3, 1)
        h_r, h_z = self.gates(h).chunk(2, 1)
        r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
        return (1 - z) * h + z * torch.tanh(x_h + self.inner(r * h))

    def forward(self, h):
        beams, n_words = 4, self.out.bias.shape[0]
        h = h.expand(beams, -1)
        word = torch.ones(beams, dtype=torch.long)
        score = torch.tensor([0, -1e9, -1e9, -1e9])
        ended = torch.zeros(beams, dtype=torch.bool)
        after_end = torch.full((1, n_words), -1e9)
        after_end[0, 0] = 0
        found = torch.zeros(beams, LONGEST, dtype=torch.long)
        i = 0
        while i < LONGEST:
            h = self.gru(h, self.embed(word))
            likely = F.log_softmax(self.out(h), 1)
            likely = torch.where(ended[:, None], after_end, likely)
            score, best = torch.topk((score[:, None] + likely).reshape(-1), beams)
            parent = best // n_words
            word = best % n_words
            h = h[parent]
            found = found[parent]
            found[:, i] = word
            ended = ended[parent] | (word == 0)
            i += 1
            if ended.all():
                break
        return score, found, i


def joined(data, names):
    """The weights of several linear layers of the GRU as one."""
    return {"joined." + kind: np.concatenate([data[f"gru.{name}.{kind}"] for name in names]) for kind in "Wb"}


@CELLS.of("W8.infer", *MODES)
def beam_search(data, cell, mode):
    return inference(mode, Decoder(data).eval(), [tensor(data["x"])],
                     lambda r: [r[0][0].item(), r[0][-1].item(), r[1].sum().item(), int(r[2])])


# ---- W9

def logistic_loss(w, x, t):
    return F.softplus(-(x @ w) * t).mean() + 0.5 * SECOND_NORM * (w * w).sum()


def lbfgs(x, t, memory=10, loss=logistic_loss):
    w = torch.zeros(x.shape[1])

    def with_gradient(w):
        w = w.detach().requires_grad_()
        value = loss(w, x, t)
        return value.item(), torch.autograd.grad(value, w)[0]

    def alone(w):
        with torch.no_grad():
            return loss(w, x, t).item()

    f, g = with_gradient(w)
    history = []
    for _ in range(iterations_of(x)):
        q = g.clone()
        factors = []
        for s, y, rho in reversed(history):
            a = rho * s.dot(q)
            q = q - a * y
            factors.append(a)
        if history:
            s, y, rho = history[-1]
            q = q * (s.dot(y) / y.dot(y).clamp(min=1e-20))
        else:
            q = q / g.norm()
        for (s, y, rho), a in zip(history, reversed(factors)):
            q = q + (a - rho * y.dot(q)) * s
        p = -q
        slope = g.dot(p).item()
        length = 1.0
        tried = alone(w + length * p)
        halved = 0
        while tried > f + 1e-4 * length * slope and halved < 20:
            length *= 0.5
            tried = alone(w + length * p)
            halved += 1
        new = w + length * p
        f, g_new = with_gradient(new)
        s, y = new - w, g_new - g
        sy = s.dot(y)
        history.append((s, y, torch.where(sy > 1e-10, 1.0 / sy, 0.0)))
        if len(history) > memory:
            history.pop(0)
        w, g = new, g_new
    return f, w


@CELLS.of("W9.lbfgs", *MODES, "compile_loss")
def minimisation(data, cell, mode):
    x, t = tensor(data["x"]), tensor(data["t"])
    if mode == "compile_loss":
        loss = torch.compile(logistic_loss)
        function = lambda x, t: lbfgs(x, t, loss=loss)
    else:
        function = compiled(lbfgs, mode)
    return Case(lambda: function(x, t), lambda found: [float(found[0]), found[1].abs().sum().item()])


# ---- W10

class SineMLP(nn.Module):
    def __init__(self, n_units):
        super().__init__()
        self.l1, self.l2, self.l3 = nn.Linear(1, n_units), nn.Linear(n_units, n_units), nn.Linear(n_units, 1)


def apply_mlp(p, x):
    h = F.relu(F.linear(x, p[0], p[1]))
    h = F.relu(F.linear(h, p[2], p[3]))
    return F.linear(h, p[4], p[5])


def maml_loss(model, xs, ys, xq, yq, steps=1):
    p = list(model.parameters())
    total = 0
    for i in range(xs.shape[0]):
        moved = p
        for _ in range(steps):
            loss = F.mse_loss(apply_mlp(moved, xs[i]), ys[i])
            gradients = torch.autograd.grad(loss, moved, create_graph=True)
            moved = [a - 0.01 * g for a, g in zip(moved, gradients)]
        total = total + F.mse_loss(apply_mlp(moved, xq[i]), yq[i])
    return total / xs.shape[0]


def maml_loss_of_functions(model, xs, ys, xq, yq, steps=1):
    """With torch.func.grad, which torch.compile can differentiate twice."""
    p = tuple(model.parameters())
    gradient = torch.func.grad(lambda p, x, y: F.mse_loss(apply_mlp(p, x), y))
    total = 0
    for i in range(xs.shape[0]):
        moved = p
        for _ in range(steps):
            moved = tuple([a - 0.01 * g for a, g in zip(moved, gradient(moved, xs[i], ys[i]))])
        total = total + F.mse_loss(apply_mlp(moved, xq[i]), yq[i])
    return total / xs.shape[0]


@CELLS.of("W10.grad W10.train", *MODES, "compile_func")
def maml(data, cell, mode):
    loss = maml_loss_of_functions if mode == "compile_func" else maml_loss
    model = filled(SineMLP(len(data["l1.b"])), data)
    return supervised(data, cell, mode, model, loss, RATE_OF_MAML, inputs=("xs", "ys", "xq", "yq"))


# ---- W11

class Block(nn.Module):
    def __init__(self, data, heads=4):
        super().__init__()
        self.heads = heads
        n_units = data["x"].shape[2]
        self.ln1, self.ln2 = nn.LayerNorm(n_units), nn.LayerNorm(n_units)
        for name in ("q", "k", "v", "o", "f1", "f2"):
            setattr(self, name, linear(data, name))
        with torch.no_grad():
            for name in ("ln1", "ln2"):
                getattr(self, name).weight.copy_(tensor(data[name + ".gamma"]))
                getattr(self, name).bias.copy_(tensor(data[name + ".beta"]))

    def forward(self, x):
        n, length, units = x.shape
        h = self.ln1(x)
        q, k, v = (layer(h).view(n, length, self.heads, -1).transpose(1, 2) for layer in (self.q, self.k, self.v))
        c = F.scaled_dot_product_attention(q, k, v)
        x = x + self.o(c.transpose(1, 2).reshape(n, length, units))
        return x + self.f2(F.relu(self.f1(self.ln2(x))))


def squared_error(model, x, t):
    return F.mse_loss(model(x), t)


@CELLS.of("W11.infer W11.grad W11.train", *MODES)
def transformer(data, cell, mode):
    return supervised(data, cell, mode, Block(data), squared_error)


# ---- W12

@CELLS.of("W12.call", *MODES)
def call(data, cell, mode):
    x, function = tensor(data["x"]), compiled(lambda x: x + 1, mode)
    return Case(lambda: function(x), digest)
