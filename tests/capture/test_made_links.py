"""Links and Parameters that are made in compiled functions: drawn as eagerly, used there, returned, stored and copied."""
import copy

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import check, variable


class Box:
    """Keeps what is made."""

    def __init__(self):
        self.link, self.all, self.cache = None, [], {}


class Net(chainer.Chain):
    def __init__(self, n):
        super().__init__()
        with self.init_scope():
            self.first, self.second = L.Linear(4, n), L.Linear(None, 2)
            self.scale = chainer.Parameter(1.5, (2,))

    def forward(self, x):
        h = self.second(F.tanh(self.first(x)))
        return h * F.broadcast_to(self.scale, h.shape)


def dies(x, box):
    drawn = np.random.rand(3, 4).astype("f")
    return L.Linear(4, 2)(x * drawn) + F.sum(F.dropout(x))


def leaves(x, box):
    link = L.Linear(None, 2)
    link.note = "made here"
    return link(x), link, link.W.name, type(link) is L.Linear, isinstance(link.W, chainer.Parameter), L.Linear(None, 3)


def parameters(x, box):
    p = chainer.Parameter(chainer.initializers.Normal(0.5), (3, 4))
    q = chainer.Parameter(0.3, (4,), name="q")
    r = chainer.Parameter(np.ones((3, 4), "f"))
    return p * x + F.broadcast_to(q, x.shape) + r, p, q, r, [q.name, p.shape, r.is_initialized]


def stored(x, box):
    if box.link is None:
        box.link = L.Linear(4, 2)
    if "p" not in box.cache:
        box.cache["p"] = chainer.Parameter(0.5, (3,))
    box.all.append(L.Linear(2, 3))
    h = box.all[-1](F.tanh(box.link(x)))
    return h + F.broadcast_to(box.cache["p"], h.shape)


def chains(x, box):
    net = Net(5)
    return net, net(x), [p.name for p in net.params()], len(list(net.links()))


def sequences(x, box):
    made = chainer.Sequential(L.Linear(4, 3), F.relu)
    made.append(L.Linear(None, 2))
    rest = chainer.ChainList(L.Linear(2, 2), L.Linear(2, 1))
    return made, rest, rest[1](rest[0](made(x))), len(made)


def with_statistics(x, box):
    norm = L.BatchNormalization(4)
    return norm(L.LayerNormalization(4)(x + L.EmbedID(5, 4)(np.array([0, 1, 2], "i")))), norm


def recurrent(x, box):
    cell = L.LSTM(4, 3)
    cell(x)
    return cell(x * 2), cell.h, cell


def given_arrays(x, box):
    link = L.Linear(4, 2, initialW=np.full((2, 4), 0.5, "f"), initial_bias=x.array[0, :2])
    link.cleargrads()
    return link(x), link


def decided(x, box):
    link = L.Linear(4, 4)
    y = link(x)
    while float(F.sum(y * y).array) > 0.5:
        y = F.tanh(link(y)) * 0.5
    if float(F.sum(x).array) > 0:
        return y, link
    return link


def made_on_one_side(x, box):
    if float(F.sum(x).array) > 0:
        box.all.append(L.Linear(4, 2))
        return box.all[-1](x)
    return L.Linear(4, 4)(x) * 2


def made_in_a_loop(x, box):
    n = 0
    while float(F.sum(x).array) < 1 and n < 5:
        if box.link is None:
            box.link = L.Linear(4, 4)
        x, n = F.tanh(box.link(x)), n + 1
    return x, n


def gradient_inside(x, box):
    link = L.Linear(4, 1)
    gW, = chainer.grad([F.sum(F.tanh(link(x)))], [link.W], enable_double_backprop=True)
    return F.sum(gW * gW), link


def copies(x, box):
    if box.link is None:
        box.link = L.Linear(4, 2)
    same, deep = box.link.copy(), copy.deepcopy(box.link)
    return same(x) + deep(x) * 2 + box.link(x), same, deep


def under_a_setting(x, box):
    with chainer.using_config("dtype", np.float16):
        link, p = L.Linear(4, 2), chainer.Parameter(0.5, (2,))
    return F.tanh(x), link, p, link.W.dtype, p.dtype


PROGRAMS = [dies, leaves, parameters, stored, chains, sequences, with_statistics, recurrent, given_arrays, decided, made_on_one_side,
            made_in_a_loop, gradient_inside, copies, under_a_setting]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(function):
    def make(compile):
        box, compiled = Box(), compile(function)
        return (lambda x: compiled(x, box)), box
    calls = [lambda k=k: (variable(3, 4, seed=k, low=-1.0 + k % 2, high=k % 2 + 0.1),) for k in (0, 1)]
    check(make, calls, compiled=True, strict=True)


def test_what_a_link_makes_once():
    class Lazy(chainer.Chain):
        def __init__(self):
            super().__init__()
            self.target = None

        def forward(self, x):
            if not hasattr(self, "inner"):
                with self.init_scope():
                    self.inner = L.Linear(x.shape[1], 2)
            if self.target is None:
                self.target = copy.deepcopy(self.inner)
            return self.inner(x) - self.target(x * 2)

    def make(compile):
        net = Lazy()
        return compile(net), net
    check(make, [lambda: (variable(3, 4),)], rounds=3, compiled=True, strict=True)


def test_initializers_of_the_user_wait_for_the_next_call():
    def fill(array):
        array[...] = np.arange(array.size).reshape(array.shape)

    def function(x, box):
        if box.link is None:
            box.link = L.Linear(4, 2, initialW=fill)
        return box.link(x)

    def make(compile):
        box, compiled = Box(), compile(function)
        return (lambda x: compiled(x, box)), box
    check(make, [lambda: (variable(3, 4),)], rounds=3, compiled=True, strict=True)
