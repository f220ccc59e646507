"""Any Chainer function works: those without a lowering run whole, with gradients of every order and eager's random numbers."""
import collections
import functools

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, check, variable

from dy2static import not_to_static, to_static


class Cube(chainer.FunctionNode):
    """A user's function that can be differentiated twice."""

    def __init__(self, scale):
        self.scale = scale

    def check_type_forward(self, in_types):
        chainer.utils.type_check.expect(in_types.size() == 1)

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] ** 3 * self.scale).astype(inputs[0].dtype),

    def backward(self, indexes, gys):
        x, = self.get_retained_inputs()
        return 3 * x * x * gys[0] * self.scale,


class Old(chainer.Function):
    """An old-style function, with two outputs and state between forward and backward."""

    def forward(self, inputs):
        x, y = inputs
        self.product = x * y
        return self.product, x + y

    def backward(self, inputs, gys):
        x, y = inputs
        g, h = (0 if gy is None else gy for gy in gys)
        return (g * y + h).astype(x.dtype), (g * x + h).astype(y.dtype)


class ByValue(chainer.FunctionNode):
    """A function whose output shape depends on what it is given."""

    def forward(self, inputs):
        self.mask = inputs[0] > 0
        return inputs[0][self.mask],

    def backward(self, indexes, gys):
        return chainer.Variable(np.zeros(self.mask.shape, "f")),


class Draws(chainer.FunctionNode):
    """A function that draws."""

    def forward(self, inputs):
        self.noise = np.random.rand(*inputs[0].shape).astype(inputs[0].dtype)
        return inputs[0] * self.noise,

    def backward(self, indexes, gys):
        return gys[0] * self.noise,


def image():
    return (variable(2, 3, 6, 6),)


def matrix():
    return (variable(4, 5),)


def links(*made):
    model = chainer.ChainList(*made)
    for k, p in enumerate(model.params()):
        if p.array is not None:
            p.array[...] = array(*p.shape, seed=k, dtype=p.dtype.char)
    return model


#: name: function of (links, x), links, arguments
CASES = {
    "convolution": (lambda m, x: F.relu(m[0](x)), lambda: links(L.Convolution2D(3, 4, 3, pad=1)), image),
    "deconvolution": (lambda m, x: m[0](x), lambda: links(L.Deconvolution2D(3, 4, 3, stride=2)), image),
    "pooling": (lambda m, x: (F.max_pooling_2d(x, 2), F.average_pooling_2d(x, 3, 1), F.spatial_pyramid_pooling_2d(x, 2)), links, image),
    "batch normalisation": (lambda m, x: m[0](m[1](x)), lambda: links(L.BatchNormalization(3), L.Convolution2D(3, 3, 3)), image),
    "group normalisation": (lambda m, x: m[0](x), lambda: links(L.GroupNormalization(1, 3)), image),
    "unpooling and resizing": (lambda m, x: (F.unpooling_2d(x, 2), F.resize_images(x, (3, 3)), F.depth2space(F.concat([x] * 4, 1), 2)), links, image),
    "local response": (lambda m, x: F.local_response_normalization(x), links, image),
    "activations": (lambda m, x: (F.selu(x), F.softplus(x), F.elu(x), F.rrelu(x), F.maxout(x[:, :4], 2), F.hard_sigmoid(x)), links, matrix),
    "losses": (lambda m, x: (F.gaussian_nll(x, x * 2, x), F.contrastive(x, x * 2, np.array([0, 1, 0, 1])), F.bernoulli_nll(F.sigmoid(x), x)), links, matrix),
    "linear algebra": (lambda m, x: (F.inv(F.matmul(x, x, transb=True) + np.eye(4, dtype="f")), F.batch_det(F.matmul(x, x, transb=True)[None])), links, matrix),
    "noise": (lambda m, x: (F.dropout(x, 0.4), F.gaussian(x, x), F.gumbel_softmax(x), F.zoneout(x, x * 2)), links, matrix),
    "lstm": (lambda m, x: m[0](m[0](x)[:, :5]), lambda: links(L.LSTM(5, 6)), matrix),
    "gru": (lambda m, x: m[0](x), lambda: links(L.StatefulGRU(5, 6)), matrix),
    "n-step": (lambda m, x: m[0](None, None, [x, x[:2]]), lambda: links(L.NStepLSTM(2, 5, 6, 0.3)), matrix),
    "embedding": (lambda m, x: m[0](np.array([[0, 1], [2, 1]])) * F.sum(x), lambda: links(L.EmbedID(4, 3)), matrix),
    "inception": (lambda m, x: m[0](x), lambda: links(L.Inception(3, 2, 2, 2, 2, 2, 2)), image),
    "user's": (lambda m, x: Cube(2.0).apply((F.tanh(x),))[0] * 2, links, matrix),
    "user's, twice": (lambda m, x: Cube(2.0).apply(Cube(1.0).apply((x,)))[0], links, matrix),
    "old": (lambda m, x: Old()(x, F.tanh(x)), links, matrix),
    "old, one output used": (lambda m, x: Old()(x, F.tanh(x))[1], links, matrix),
    "shape by value": (lambda m, x: ByValue().apply((x,))[0], links, matrix),
    "draws": (lambda m, x: Draws().apply((Draws().apply((x,))[0],))[0], links, matrix),
    "integers": (lambda m, x: (F.argmax(x, axis=1), F.cast(x, "i"), F.select_item(x, np.array([0, 1, 2, 3]))), links, matrix),
    "evaluated": (lambda m, x: evaluated(x), links, matrix),
    "under config": (lambda m, x: no_train(x), links, matrix),
    "forget": (lambda m, x: F.forget(lambda h: F.tanh(h) * 2, x), links, matrix),
    "sequences": (lambda m, x: (F.pad_sequence([x[0], x[1, :3]]), F.split_axis(x, [1, 3], 1), F.separate(x), F.hstack([x, x])), links, matrix),
}


def evaluated(x):
    """What has no gradient, under a decision that reads what has one."""
    labels = np.array([0, 1, 2, -1])
    if float(F.sum(F.absolute(x)).array) > 0:
        return F.classification_summary(x, labels)
    return F.classification_summary(x, labels, beta=2.0)


def no_train(x):
    with chainer.using_config("train", False):
        y = F.dropout(F.rrelu(x))
    return y + F.dropout(x)


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    function, make_links, args = CASES[name]

    def make(compile):
        model = make_links()
        return compile(lambda x: function(model, x)), model
    check(make, [args] * 3, rounds=1)


TWICE = {
    "softplus": lambda x: F.sum(F.softplus(x * x)),
    "convolution": lambda x: F.sum(F.convolution_2d(F.reshape(x, (1, 1, 4, 5)), x[:3, :3][None, None]) ** 2),
    "user's": lambda x: F.sum(Cube(2.0).apply((F.tanh(x),))[0]),
    "logsumexp": lambda x: F.sum(F.logsumexp(F.selu(x), axis=1)),
    "normalisation": lambda x: F.sum(F.normalize(x) ** 3),
    "inverse": lambda x: F.sum(F.inv(F.matmul(x, x, transb=True) + np.eye(4, dtype="f"))),
}


@pytest.mark.parametrize("name", TWICE)
def test_higher_orders(name):
    def orders(function):
        x = variable(4, 5)
        found = []
        result = function(x)
        for _ in range(2):
            g, = chainer.grad([result], [x], enable_double_backprop=True)
            found.append(g.array)
            result = F.sum(g * g * x)
        result.backward()
        return found + [x.grad]
    static = to_static(TWICE[name])
    for _ in range(3):
        for a, b in zip(orders(TWICE[name]), orders(static)):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


class Scaled(chainer.FunctionNode):
    """A function whose gradient reads a number that it keeps in some object."""

    def __init__(self, held):
        self.held = held

    def forward(self, inputs):
        return inputs[0] * 1,

    def backward(self, indexes, gys):
        return gys[0] * number_in(self.held),


Held = collections.namedtuple("Held", "number text")


class Holder:
    """An object with a method that gives its number."""

    steps = 0

    def __init__(self, number):
        self.number = number

    def get(self):
        return self.number


def number_in(held):
    return held() if callable(held) else held[0] if isinstance(held, (tuple, collections.deque)) else held


HELD = {"named tuple": lambda n: Held(n, "n"), "deque": lambda n: collections.deque([n]), "partial": lambda n: functools.partial(float, n),
        "method": lambda n: Holder(n).get, "number": lambda n: n}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("calls_host", [False, True])
@pytest.mark.parametrize("name", HELD)
def test_numbers_that_functions_hold(name, calls_host):
    """Those of each call, also if they are attributes of an object that Python code was given before."""
    def loss(holder, x):
        if calls_host:
            count(holder)
        return F.sum(Scaled(HELD[name](holder.number)).apply((x * 2,))[0])

    @not_to_static
    def count(holder):
        holder.steps += 1
    static = to_static(loss, backend="numpy")
    for number in (1.0, 2.0, 2.0, 3.0, 4.0):
        x = variable(3)
        static(Holder(number), x).backward()
        np.testing.assert_allclose(x.grad, 2 * number)


class Choosy(chainer.FunctionNode):
    """A function whose shape depends on contents, and that fails for most of those that are made up."""

    __module__ = "chainer.functions.choosy"

    def forward(self, inputs):
        count = inputs[0]
        if count.any() and count[0] < 4:
            raise ValueError("too few")
        return np.zeros(1 + count[0] // 4, "f"),


@pytest.mark.filterwarnings("ignore")
def test_what_trial_runs_did_not_show_is_seen_by_the_run():
    """Where a trial fails, the types of the others are relied on until a run gives other ones."""
    static = to_static(lambda x: Choosy().apply((x,))[0])
    zero, four = np.zeros(2, "i"), np.full(2, 4, "i")
    assert [static(x).shape for x in (zero, zero, four, four, zero)] == [(1,), (1,), (2,), (2,), (1,)]
    found = static.cache_info()                         # the calls behind the surprise are not served by a program of the whole
    assert (found.captures, found.misses) == (1, 3)
