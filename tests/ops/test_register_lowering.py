"""`register_lowering`: for FunctionNode classes, old-style Functions and callables of any kind; bad input is refused."""
import functools
import math
import pathlib
import re
import runpy

import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import array, check, variable
from chainer.functions.activation.relu import ReLU

import dy2static
from dy2static import ops, to_static
from dy2static.errors import SignatureError
from dy2static.lowering import registration


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    monkeypatch.setattr(registration, "_REGISTERED", {})


def classes():
    """Classes of their own for each test, by name."""
    class Swish(chainer.FunctionNode):
        def __init__(self, beta):
            self.beta = beta

        def forward(self, inputs):
            self.retain_inputs((0,))
            x, = inputs
            self.steps = 1
            return x / (1 + np.exp(-self.beta * x)),

        def backward(self, indexes, gradients):
            x, = self.get_retained_inputs()
            s = F.sigmoid(self.beta * x)
            return gradients[0] * (s + self.beta * x * s * (1 - s)),

    class Both(chainer.FunctionNode):
        def forward(self, inputs):
            self.retain_inputs((0, 1))
            return inputs[0] * inputs[1], inputs[0] + inputs[1]

        def backward(self, indexes, gradients):
            a, b = self.get_retained_inputs()
            g, h = [0 if part is None else part for part in gradients]
            return g * b + h, g * a + h

    class Square(chainer.Function):
        def forward(self, inputs):
            return inputs[0] * inputs[0],

        def backward(self, inputs, gradients):
            return 2 * inputs[0] * gradients[0],
    return Swish, Both, Square


def lower_all(Swish, Both, Square):
    @dy2static.register_lowering(Swish)
    def swish(node, x):
        return x * ops.sigmoid(x * node.beta) if isinstance(node.beta, float) else None

    @dy2static.register_lowering(Both)
    def both(node, a, b):
        return a * b, a + b

    @dy2static.register_lowering(Square)
    def square(node, x):
        return x * x


def whole(compile):
    Swish, Both, Square = classes()
    lower_all(Swish, Both, Square)

    def f(x, y):
        a, b = Both().apply((Swish(1.5).apply((x,))[0], y))
        return F.tanh(a) + Square()(b), a
    return compile(f), None


def declined(compile):
    Swish, Both, Square = classes()
    lower_all(Swish, Both, Square)
    return compile(lambda x, y: Swish(np.float32(2.0)).apply((x,))[0] * y), None


def two():
    return variable(3, 4), variable(3, 4, seed=1)


def test_classes():
    function = check(whole, [two], rounds=3, compiled=True)
    assert function.stats()["opaque"] == 0 and function.stats()["captures"] == 1     # nothing is observed first


def test_declined():
    assert check(declined, [two], rounds=3, compiled=True).stats()["opaque"] == 1


def test_second_gradients():
    def make(compile):
        Swish, Both, Square = classes()
        lower_all(Swish, Both, Square)
        f = compile(lambda x, y: F.tanh(Both().apply((Swish(1.5).apply((x,))[0], y))[0]))

        def twice(x, y):
            g = chainer.grad([F.sum(f(x, y))], [x, y], enable_double_backprop=True)
            return [*g, *chainer.grad([F.sum(g[0] * g[1])], [x, y])]
        return twice, None
    check(make, [lambda: (variable(3, 4, dtype="d"), variable(3, 4, seed=1, dtype="d"))], compiled=True)


@pytest.mark.parametrize("form", [lambda x, beta: x * ops.sigmoid(x * beta), lambda x, beta: x * ops.sigmoid(ops.mul(beta, x))],
                         ids=["operators", "ops"])
def test_numbers_that_change_are_inputs(form):
    Swish, *_ = classes()
    dy2static.register_lowering(Swish)(lambda node, x: form(x, node.beta))

    def f(x, beta):
        return Swish(beta).apply((x,))[0] * beta
    compiled = to_static(f)
    for beta in (0.5, 1.5, -2.0, 3.0, 1e-3):
        x, y = (variable(4, 3) for _ in range(2))
        results = [function(x, beta) for function, x in ((f, x), (compiled, y))]
        gradients = [chainer.grad([F.sum(result)], [x]) for result, x in zip(results, (x, y))]
        for eager, found in (results, [part for part, in gradients]):
            np.testing.assert_allclose(found.array, eager.array, rtol=1e-4, atol=1e-6)
    assert compiled.stats()["captures"] == 2


@pytest.mark.parametrize("by", [
    lambda x, y: y.array, lambda x, y: x.array, lambda x, y: float(x.array.sum()), lambda x, y: len(x),
    lambda x, y: 1.0 / len(x)], ids=["array", "own array", "number of the run", "size", "number of a size"])
def test_attributes_of_each_kind_are_operands(by):
    """Eager mode takes them for constants: no gradient goes through them."""
    class Scale(chainer.FunctionNode):
        def __init__(self, by):
            self.by = by

        def forward(self, inputs):
            return inputs[0] * self.by,

        def backward(self, indexes, gradients):
            return gradients[0] * self.by,
    dy2static.register_lowering(Scale)(lambda node, x: x * node.by)

    def f(x, y):
        return Scale(by(x, y)).apply((x,))[0]
    compiled = to_static(f)
    for rows in range(2, 8):
        x, y = variable(rows, 3), variable(rows, 3, seed=1)
        eager, found = f(x, y), compiled(x, y)
        np.testing.assert_allclose(found.array, eager.array, rtol=1e-6)
        gradients = [chainer.grad([F.sum(result)], [x])[0].array for result in (eager, found)]
        np.testing.assert_allclose(*gradients, rtol=1e-6)
    assert compiled.stats()["captures"] == 3 and compiled.stats()["cuts"] == 0


def test_attributes_that_forward_sets_are_not_there():
    Swish, Both, Square = classes()
    lower_all(Swish, Both, Square)

    def reads(x):
        node = Swish(1.5)
        y, = node.apply((x,))
        return y * node.steps
    check(lambda compile: (compile(reads), None), [lambda: (variable(3),)], compiled=False)


class Doubled:
    """A callable object without source that could be converted."""

    __slots__ = ()

    def __call__(self, x):
        return x * 2 if isinstance(x, (float, int)) else F.scale(x, x.xp.full(x.shape, 2, x.dtype), 0)


doubled = Doubled()
partial_sum = functools.lru_cache(maxsize=None)(lambda n: float(n))


def helper(x, scale):
    return x * scale


def test_callables():
    @dy2static.register_lowering(np.hypot)
    def hypot(a, b):
        return np.sqrt(a * a + b * b)

    @dy2static.register_lowering(doubled)
    def twice(x):
        return x + x

    @dy2static.register_lowering(F.sigmoid)
    def sigmoid(x):
        if x.ndim == 1:
            return NotImplemented
        return F.sigmoid(x)                             # here it is the function itself

    @dy2static.register_lowering(math.dist)
    def dist(a, b):
        return sum([(p - q) ** 2 for p, q in zip(a, b)]) ** 0.5

    def f(x, y):
        h = np.hypot(x.array, y.array)
        return doubled(x) * h + F.sigmoid(y), F.sigmoid(y[0]), math.dist([1.0, 2.0], [2.0, 3.0])
    function = check(lambda compile: (compile(f), None), [two], rounds=3, compiled=True)
    assert function.stats()["host_call"] == 0


def test_methods_and_functions_of_the_users():
    class Model:
        def scaled(self, x):
            return helper(x, 3.0)
    seen = []

    @dy2static.register_lowering(Model.scaled)
    def scaled(self, x):
        return helper(x, 3.0) + 0

    @dy2static.register_lowering(helper)
    def lowered(x, scale):
        seen.append(scale)
        return x * scale
    model = Model()
    static = to_static(lambda x: model.scaled(x))
    x = variable(3)
    np.testing.assert_array_equal(static(x).array, model.scaled(x).array)
    assert len(seen) == 1


def test_the_last_one_counts():
    @dy2static.register_lowering(helper)
    def first(x, scale):
        return x

    @dy2static.register_lowering(helper)
    def second(x, scale):
        return x * scale
    np.testing.assert_array_equal(to_static(lambda x: helper(x, 2.0))(array(3)), array(3) * 2)


BAD = {
    "a number": (3, "for a class of functions or a callable"),
    "another class": (dict, "no class of Chainer functions"),
    "the base": (chainer.FunctionNode, "base of all functions"),
    "the old base": (chainer.Function, "base of all functions"),
    "one of ours": (ReLU, "has a lowering already"),
    "compiled": (to_static(helper), "compiled already"),
    "a bound method": (variable(1).reshape, "method of one object"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_targets(name):
    target, words = BAD[name]
    with pytest.raises(SignatureError, match=words):
        dy2static.register_lowering(target)


def test_bad_lowerings():
    Swish, _, _ = classes()
    with pytest.raises(SignatureError, match="a lowering is a function"):
        dy2static.register_lowering(Swish)(3)
    dy2static.register_lowering(Swish)(lambda node, x: [x])
    with pytest.raises(SignatureError, match="the lowering of Swish gave"):
        to_static(lambda x: Swish(1.0).apply((x,))[0])(variable(3))


def test_the_documented_examples(tmp_path):
    page = (pathlib.Path(__file__).parent.parent.parent / "docs" / "adding-a-lowering.md").read_text()
    section = page[page.index("## Functions of your own"):]
    script = tmp_path / "script.py"
    script.write_text("\n".join(re.findall(r"```python\n(.*?)```", section, flags=re.S)))
    seen = runpy.run_path(str(script))
    assert seen["f"].stats()["captures"] == seen["g"].stats()["captures"] == 1
