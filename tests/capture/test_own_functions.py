"""Functions of the user's: FunctionNodes and old-style Functions, whole or lowered, and NumPy code between functions."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, check, variable
from chainer import backend
from chainer.utils import type_check


class MulAdd(chainer.FunctionNode):
    """Two outputs, retained inputs, gradients that may not be given."""

    def forward(self, inputs):
        self.retain_inputs((0, 1))
        a, b = inputs
        return a * b, a + b

    def backward(self, indexes, gradients):
        a, b = self.get_retained_inputs()
        g, h = gradients
        found = [0, 0]
        if g is not None:
            found = [g * b, g * a]
        if h is not None:
            found = [found[0] + h, found[1] + h]
        return tuple(found)


class ScaledTanh(chainer.FunctionNode):
    """A retained output, state on the node, both array modules."""

    def __init__(self, scale):
        self.scale = scale

    def check_type_forward(self, in_types):
        type_check.expect(in_types.size() == 1, in_types[0].dtype.kind == "f")

    def forward(self, inputs):
        xp = backend.get_array_module(*inputs)
        self.retain_outputs((0,))
        self.seen = inputs[0].shape
        return xp.tanh(inputs[0] * self.scale),

    def backward(self, indexes, gradients):
        y, = self.get_retained_outputs()
        assert self.seen == y.shape
        return gradients[0] * (1 - y * y) * self.scale,


class FirstOnly(chainer.FunctionNode):
    def forward(self, inputs):
        return inputs[0] * 2 + inputs[1],

    def backward(self, indexes, gradients):
        return gradients[0] * 2, None


class PerIndex(chainer.FunctionNode):
    def forward(self, inputs):
        return inputs[0] * inputs[1],

    def backward(self, indexes, gradients):
        return tuple(gradients[0] * (i + 2) for i in indexes)


class Square(chainer.Function):
    def forward(self, inputs):
        self.retain_inputs((0,))
        self.y = inputs[0] * inputs[0]
        return self.y,

    def backward(self, inputs, gradients):
        return 2 * inputs[0] * gradients[0],


class OldPair(chainer.Function):
    def forward_cpu(self, inputs):
        return inputs[0] + inputs[1], inputs[0] * inputs[1]

    def backward_cpu(self, inputs, gradients):
        found = np.zeros_like(inputs[0])
        for part, factor in zip(gradients, (1, inputs[1])):
            found = found if part is None else found + part * factor
        return found, None


class Noise(chainer.FunctionNode):
    def forward(self, inputs):
        self.mask = np.random.rand(*inputs[0].shape).astype(inputs[0].dtype)
        return inputs[0] * self.mask,

    def backward(self, indexes, gradients):
        return gradients[0] * self.mask,


class Picky(chainer.FunctionNode):
    def forward(self, inputs):
        if inputs[0].max() > 0.9:
            raise ValueError("too big")
        return inputs[0] * 2,

    def backward(self, indexes, gradients):
        return gradients[0] * 2,


class PlusOne(type(F.relu(np.zeros(1, "f")).creator)):
    def forward(self, inputs):
        return tuple(y + 1 for y in super().forward(inputs))


def fresh(name):
    """A class of its own: of the module's, a test before may have seen what it gives."""
    base = globals()[name]
    return type(name, (base,), {})


class Rows(chainer.FunctionNode):
    """As many rows as there are positive numbers in front."""

    def forward(self, inputs):
        return inputs[0][inputs[0][:, 0] > 0],

    def backward(self, indexes, gradients):
        return None,


class Fickle(chainer.FunctionNode):
    """No gradient where the sum is negative."""

    def forward(self, inputs):
        self.is_positive = inputs[0].sum() > 0
        return inputs[0] * 2,

    def backward(self, indexes, gradients):
        return (gradients[0] * 2 if self.is_positive else None),


def two():
    return variable(3, 4), variable(3, 4, seed=1)


def one():
    return variable(3, 4),


def seeds():
    return [lambda seed=seed: (variable(3, 4, seed=seed),) for seed in range(4)]


def through_loop(x):
    steps = 0
    while float(F.sum(abs(x)).array) > 3 and steps < 5:
        x = ScaledTanh(0.7).apply((x,))[0]
        steps += 1
    return x, steps


def through_branch(x):
    return ScaledTanh(2.0 if x.array.sum() > 0 else -1.0).apply((x,))[0] if x.array[0, 0] > 0 else x * 2


def either_branch(x):
    if x.array.sum() > 0:
        return ScaledTanh(2.0).apply((x,))[0]
    return ScaledTanh(-1.0).apply((x,))[0] * 2


def penalty(a, b):
    y = F.tanh(MulAdd().apply((a, b))[0])
    g, = chainer.grad([F.sum(y)], [a], enable_double_backprop=True)
    return F.sum(g * g), y


def with_modules(a, b):
    xp = backend.get_array_module(a, b)
    m = xp.where(a.array > 0, a.array, xp.zeros_like(a.array))
    n = xp.asarray(m).sum(axis=0, keepdims=True)
    with chainer.using_device(backend.get_device_from_array(a.array)):
        z = xp.exp(n)
    return a * m + b * z, chainer.cuda.to_cpu(n), F.tanh(chainer.Variable(n)), chainer.cuda.get_array_module(a) is np


def numpy_between(a, b):
    h = np.cumsum(F.relu(a).array, axis=1)[:, ::-1]
    order = np.argsort(b.array, axis=1)
    h = np.take_along_axis(h, order, 1)
    return a * h + F.select_item(b, order.argmax(axis=1).astype("i")).array.sum()


PROGRAMS = {
    "several outputs": (lambda a, b: MulAdd().apply(MulAdd().apply((a, b))), [two]),
    "one of several": (lambda a, b: MulAdd().apply((a, b))[0] * 2, [two]),
    "retained output": (lambda a, b: ScaledTanh(2.0).apply((a,))[0] * ScaledTanh(3.0).apply((b,))[0], [two]),
    "varying attribute": (lambda a, k: ScaledTanh(k).apply((a,))[0] * k, [lambda k=k: (variable(3, 4), k / 2) for k in range(4)]),
    "None gradient": (lambda a, b: FirstOnly().apply((F.exp(a), F.exp(b)))[0] * 3, [two]),
    "None gradient, added": (lambda a, b: FirstOnly().apply((a, b))[0] * F.exp(b), [two]),
    "by index": (lambda a, b: PerIndex().apply((a, b))[0], [two, lambda: (variable(3, 4), array(3, 4)),
                                                            lambda: (variable(3, 4), variable(3, 4, requires_grad=False))]),
    "old style": (lambda a: Square()(a) * 2, [one]),
    "old style, None": (lambda a, b: OldPair()(a, b)[1] * 2, [two]),
    "draws": (lambda a: Noise().apply((a,))[0] * F.dropout(a), [one]),
    "raises": (lambda a: Picky().apply((a,))[0], [one, lambda: (variable(3, 4, high=0.5),)]),
    "derived from Chainer's": (lambda a: PlusOne().apply((a,))[0], [one]),
    "in a loop": (through_loop, seeds()),
    "in a branch": (through_branch, seeds()),
    "in both branches": (either_branch, seeds()),
    "gradient inside": (penalty, [two]),
    "array module": (with_modules, [two]),
    "NumPy between": (numpy_between, [two]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_functions(name):
    function, calls = PROGRAMS[name]
    check(lambda compile: (compile(function), None), calls, rounds=3, compiled=None if name == "raises" else True)


def test_second_gradients():
    """Of a function kept whole, also where they are None."""
    def make(compile):
        f = compile(lambda a, b: MulAdd().apply((ScaledTanh(2.0).apply((a,))[0], FirstOnly().apply((a, b))[0]))[0])
        def twice(a, b):
            g = chainer.grad([F.sum(f(a, b))], [a, b], enable_double_backprop=True)
            return g, chainer.grad([F.sum(g[0] * g[0])], [a, b]), chainer.grad([F.sum(g[1] * 2)], [a, b])
        return twice, None
    check(make, [two], rounds=3, compiled=True)


def test_shapes_that_contents_decide():
    """What was observed once does not hold: the call in which that turns out runs eagerly, later ones in parts."""
    kind = fresh("Rows")

    def rows(a):
        return kind().apply((a,))[0] * 2
    calls = [lambda seed=seed: (np.random.RandomState(seed).uniform(-1, 1, (6, 2)).astype("f"),) for seed in range(5)]
    assert len({sum(call()[0][:, 0] > 0) for call in calls}) > 1
    function = check(lambda compile: (compile(rows), None), calls, compiled=None)
    assert function.stats()["captures"] <= 3


def test_a_gradient_that_vanishes_inside():
    kind = fresh("Fickle")

    def inside(a):
        g, = chainer.grad([F.sum(kind().apply((a,))[0] * a)], [a])
        return F.sum(g * a)
    check(lambda compile: (compile(inside), None), seeds(), rounds=2)


class Own(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(4, 4, initialW=array(4, 4))

    def forward(self, x):
        return MulAdd().apply((self.l(x), x))[1]


def test_in_a_chain():
    def make(compile):
        model = Own()
        return compile(model), model
    check(make, [one], rounds=3, compiled=True)


# --- sizes ----------------------------------------------------------------------------------------------------------------------

class Sorted(chainer.Function):
    """Two results: one of the size of the operand, one that is larger."""

    def forward(self, inputs):
        self.order = np.argsort(inputs[0], axis=0)
        return np.take_along_axis(inputs[0], self.order, 0), np.repeat(inputs[0], 2, axis=0)

    def backward(self, inputs, gradients):
        found = np.zeros_like(inputs[0])
        np.put_along_axis(found, self.order, gradients[0], 0)
        return found + gradients[1][::2] + gradients[1][1::2],


class EverySecond(chainer.FunctionNode):
    def forward(self, inputs):
        self.shape = inputs[0].shape
        return inputs[0][::2],

    def backward(self, indexes, gradients):
        zeros = np.zeros(self.shape, "f")
        return F.scatter_add(zeros, slice(None, None, 2), gradients[0]),


def captures_of(function, calls):
    made = check(lambda compile: (compile(function), None), calls, rounds=1, compiled=None)
    assert not made.stats()["fallbacks"] and not made.stats()["cuts"]
    return made.stats()["captures"]


def of_rows(*sizes):
    return [lambda n=n, k=k: (variable(n, 4, seed=k),) for k, n in enumerate(sizes)]


def test_a_function_is_learned_for_all_sizes():
    kind = fresh("Sorted")

    def pair(x):
        y, z = kind()(F.tanh(x))
        return y * x, z * 2
    assert captures_of(pair, of_rows(3, 5, 4, 8, 6, 9, 11)) == 1


def test_a_function_is_learned_for_all_lengths_of_sequences():
    def padded(xs):
        return ScaledTanh(2.0).apply((F.pad_sequence(xs) * 2,))[0]
    calls = [lambda lengths=lengths: ([variable(n, 2, seed=n) for n in lengths],)
             for lengths in ((3, 2, 5), (4, 6, 2), (7, 3, 3), (2, 8, 5), (9, 4, 2), (3, 3, 10))]
    assert captures_of(padded, calls) == 1


def test_a_function_whose_results_do_not_follow_has_a_program_for_each_size():
    kind = fresh("EverySecond")
    assert captures_of(lambda x: kind().apply((x,))[0] * 3, of_rows(*(3, 5, 4, 8, 6) * 2)) == 5


class AtMostSix(chainer.Function):
    def forward(self, inputs):
        self.rest = max(len(inputs[0]) - 6, 0)
        return inputs[0][:6] * 2,

    def backward(self, inputs, gradients):
        return np.pad(gradients[0] * 2, ((0, self.rest), (0, 0)), "constant"),


@pytest.mark.parametrize("draws", [False, True], ids=["", "after a draw"])
def test_a_function_whose_results_do_not_follow_any_more(draws):
    """The call is made again, with the same random numbers; from then on there is a program for each size."""
    kind = fresh("AtMostSix")

    def cut(x):
        return kind()(F.dropout(x, 0.3) if draws else x)[0] * 3 + np.random.rand()
    assert captures_of(cut, of_rows(3, 5, 4, 6, 2, 7, 9, 7, 9, 8, 3)) >= 3


# --- functions that functions call -----------------------------------------------------------------------------------------------

class Applied(chainer.FunctionNode):
    def __init__(self, function):
        self.function = function

    def forward(self, inputs):
        return self.function(inputs[0]),

    def backward(self, indexes, gradients):
        return gradients[0] * 2,


SEEN, SCALES = [], [2.0]


def scaled(x):
    return x * SCALES[0]


def plain(x):
    return F.tanh(x) * 2


class Block(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(4, 4, initialW=array(4, 4))

    def inner(self, x):
        return F.relu(self.l(x))


CALLED = {
    "plain": (lambda model, x: F.forget(plain, x) + F.forget(F.exp, x), True),
    "made inside": (lambda model, x: F.forget(lambda a: F.dropout(a) * np.float32(2), x), True),
    "a method": (lambda model, x: F.forget(model.inner, x), False),
    "a link": (lambda model, x: F.forget(model.l, x), False),
    "a closure": (lambda model, x: F.forget(lambda a: model.l(a) * 2, x), False),
    "a global": (lambda model, x: F.forget(scaled, x), False),
    "an effect": (lambda model, x: F.forget(lambda a: (SEEN.append(1), a * 2)[1], x), False),
    "a print": (lambda model, x: F.forget(lambda a: (print("here"), a * 2)[1], x), False),
    "in a node of one's own": (lambda model, x: Applied(lambda a: a * SCALES[0]).apply((x,))[0], False),
    "plain, in a node of one's own": (lambda model, x: Applied(lambda a: np.tanh(a)).apply((x,))[0], True),
}


@pytest.mark.parametrize("name", CALLED)
def test_functions_that_are_called_later(name):
    """In a forward and again in the backward; what they read may have changed by then."""
    function, compiled = CALLED[name]

    def make(compile):
        model = Block()
        SEEN.clear()
        SCALES[0] = 2.0
        return compile(lambda x: function(model, x) * 2), [model, SEEN, SCALES]

    def changed(roots):
        SCALES[0] += 1.0
        return one()
    check(make, [lambda roots: one(), changed, changed], rounds=2, compiled=compiled)
