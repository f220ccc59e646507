"""Gradients of second and third order through functions kept whole, where backward gives one Variable for several inputs."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, variable

from dy2static import to_static
from dy2static.lowering.registration import register_lowering
from dy2static.runtime import opaque


class Add(chainer.FunctionNode):
    """Gives the gradient that it gets, twice."""

    def forward(self, inputs):
        return inputs[0] + inputs[1],

    def backward(self, indexes, gradients):
        return gradients[0], gradients[0]


class Scaled(Add):
    """Gives one Variable that it computes, twice."""

    def forward(self, inputs):
        return 2 * (inputs[0] + inputs[1]),

    def backward(self, indexes, gradients):
        found = gradients[0] * 2
        return found, found


class Product(chainer.FunctionNode):
    """Of three inputs, two with one Variable that depends on what was retained."""

    def forward(self, inputs):
        self.retain_inputs((0, 1))
        self.retain_outputs((0,))
        return inputs[0] * inputs[1] + inputs[2],

    def backward(self, indexes, gradients):
        (a, b), (y,) = self.get_retained_inputs(), self.get_retained_outputs()
        found = gradients[0] * a * b * y
        return tuple([(found, found, gradients[0])[i] for i in indexes])


class Both(chainer.FunctionNode):
    """Two outputs, one array or another; the first gradient that there is, or both, for all inputs."""

    def forward(self, inputs):
        return inputs[0] + inputs[1], inputs[0] + inputs[1]

    def backward(self, indexes, gradients):
        there = [g for g in gradients if g is not None]
        found = there[0] if len(there) == 1 else there[0] + 3 * there[1]
        return found, found


class Same(Both):
    """One array, twice."""

    def forward(self, inputs):
        return (inputs[0] + inputs[1],) * 2


class Handed(chainer.FunctionNode):
    """What it was given, with one gradient for both."""

    def forward(self, inputs):
        return inputs[0],

    def backward(self, indexes, gradients):
        return gradients[0], gradients[0]


class Ends(Add):
    """None for the second input."""

    def backward(self, indexes, gradients):
        return gradients[0], None


class OfInput(chainer.FunctionNode):
    """Gives an input itself: for a loss, whose gradient is one."""

    def forward(self, inputs):
        self.retain_inputs((0, 1))
        return np.asarray((inputs[0] * inputs[1]).sum()),

    def backward(self, indexes, gradients):
        return self.get_retained_inputs()[::-1]


class OldAdd(chainer.Function):
    def forward(self, inputs):
        return inputs[0] + inputs[1],

    def backward(self, inputs, gradients):
        return gradients[0], gradients[0]


class Known(Add):
    """With a lowering."""


@register_lowering(Known)
def known(function, x, y):
    return x + y,


LINEAR = L.Linear(3, 3, initialW=array(3, 3))


def linear(x):
    LINEAR.cleargrads()
    return LINEAR(x) + x


def branch(x):
    return Add().apply((x, x * 0.5))[0] if float(F.sum(x * x).array) > 0 else x


def loop(x):
    count = 0
    while float(F.sum(x * x).array) < 100 and count < 3:
        x, count = Scaled().apply((x, x * 0.5))[0], count + 1
    return x


def both(kind):
    def function(x):
        y, z = kind().apply((x, x * 0.5))
        return F.tanh(y) * z
    return function


#: name: function, in debug mode (where Chainer's own functions stay whole, too).
CASES = {
    "given gradient": (lambda x: Add().apply((x, x * 0.5))[0], False),
    "given gradient, one input": (lambda x: Add().apply((x, x))[0], False),
    "computed": (lambda x: Scaled().apply((F.tanh(x), x * x))[0], False),
    "twice": (lambda x: Scaled().apply((Add().apply((x, x))[0] * x, x))[0] + Add().apply((x * x, x))[0], False),
    "retained": (lambda x: Product().apply((x, F.sin(x), x))[0], False),
    "array": (lambda x: Product().apply((x, np.full((2, 3), 0.5, "f"), x))[0], False),
    "outputs": (both(Both), False),
    "outputs of one array": (both(Same), False),
    "one output": (lambda x: Both().apply((x, F.exp(x)))[1], False),
    "input as output": (lambda x: Handed().apply((x, x * x))[0] * x, False),
    "None": (lambda x: Ends().apply((x * x, F.exp(x)))[0] * x, False),
    "input as gradient": (lambda x: OfInput().apply((x, F.sin(x)))[0], False),
    "in a branch": (branch, False),
    "in a loop": (loop, False),
    "lowered": (lambda x: Known().apply((x, x * x))[0] + Add().apply((x, x))[0], False),
    "sum, debug": (lambda x: x + x, True),
    "product, debug": (lambda x: x * x - x * 2, True),
    "link, debug": (linear, True),
    "maximum, debug": (lambda x: F.maximum(x, x * 0.5) * x, True),
    "many, debug": (lambda x: F.add(x, x, x * x) + F.sum(F.stack([x, x, x * x]), 0), True),
}


BY_BACKWARD = ("given gradient", "outputs", "in a loop", "sum, debug", "link, debug")


def by_grad(function, orders=3):
    x = variable(2, 3)
    result = F.sum(function(x) * x)
    for _ in range(orders):
        g, = chainer.grad([result], [x], enable_double_backprop=True)
        result = F.sum(g * g)
        yield g.array


def by_backward(function):
    x = variable(2, 3)
    result = F.sum(function(x))
    for _ in range(3):
        x.cleargrad()
        result.backward(enable_double_backprop=True)
        result = F.sum(x.grad_var * x.grad_var * x)
        yield x.grad


def inside(function):
    """A function that takes a gradient itself."""
    def gradient(x):
        g, = chainer.grad([F.sum(function(x) * x)], [x], enable_double_backprop=True)
        return g
    return gradient


def agree(function, static, run):
    for order, (expected, found) in enumerate(zip(run(function), run(static)), 1):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=f"order {order}")


@pytest.mark.parametrize("name", CASES)
def test_higher_orders(name):
    function, debug = CASES[name]
    with chainer.using_config("debug", debug):
        static = to_static(function, backend="numpy")
        static(variable(2, 3))
        agree(function, static, by_backward if name in BY_BACKWARD else by_grad)
        assert static.cache_info().captures


@pytest.mark.parametrize("name", ["given gradient", "retained", "outputs", "lowered", "sum, debug", "maximum, debug"])
def test_gradients_inside(name):
    function, debug = CASES[name]
    with chainer.using_config("debug", debug):
        static = to_static(inside(function), backend="numpy")
        static(variable(2, 3))
        agree(inside(function), static, lambda function: by_grad(function, 2))
        assert static.cache_info().captures


def test_gradients_that_are_not_there_stay_so():
    """A backward sees None where eager gives it None, also where only the run knows, and is not called for nothing."""
    seen = []

    class Watched(chainer.FunctionNode):
        def forward(self, inputs):
            self.retain_inputs((0,))
            return inputs[0] * inputs[1], inputs[0] * 2

        def backward(self, indexes, gradients):
            seen.append([g is not None for g in gradients])
            a, = self.get_retained_inputs()
            first = [None, gradients[0] * a] if gradients[0] is not None else [None, None]
            return (None if gradients[1] is None else gradients[1] * 2), first[1]

    def function(x):
        y, z = Watched().apply((x, x * 0.5))
        return y * z

    def calls(run):
        seen.clear()
        return [g.copy() for g in by_grad(run)], sorted(seen)
    static = to_static(function, backend="numpy")
    static(variable(2, 3))
    (expected, wanted), (found, given) = calls(function), calls(static)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert {tuple(pattern) for pattern in given} == {tuple(pattern) for pattern in wanted}


class Nearest(chainer.FunctionNode):
    """The nearest rows; a gradient of the rows only if it is asked for."""

    def forward(self, inputs):
        self.retain_inputs((0, 1))
        x, rows = inputs
        self.chosen = ((x[:, None] - rows[None]) ** 2).sum(2).argmin(1)
        return rows[self.chosen],

    def backward(self, indexes, gys):
        rows = self.get_retained_inputs()[1]
        found = gys[0], F.scatter_add(chainer.Variable(np.zeros_like(rows.array)), self.chosen, gys[0]) if 1 in indexes else None
        return tuple(found[i] for i in indexes)


def test_a_step_in_native_code_checks_that_gradients_of_own_functions_are_there():
    link, rows = L.Linear(3, 2), L.EmbedID(4, 2)

    def step(x):
        loss = F.sum(Nearest().apply((link(x), rows.W))[0] ** 2)
        link.cleargrads(), rows.cleargrads()
        loss.backward()
        return loss
    compiled, x = to_static(step, backend="c", strict=True), np.arange(15, dtype="f").reshape(5, 3)
    found = [(call(x).array, link.W.grad.copy(), rows.W.grad.copy()) for call in (step, compiled, compiled)]
    for ours in found[1:]:
        for a, b in zip(ours, found[0]):
            np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
@pytest.mark.parametrize("inside", (False, True))
@pytest.mark.parametrize("backend", ("numpy", "c"))
def test_a_function_of_the_user_reads_the_array_that_a_parameter_has_when_backward_runs(inside, backend):
    """As Chainer's own do: the caller, or the function itself, has given it another one since."""
    def gradients(compile):
        w = chainer.Parameter(np.array([0.5, 1.5, -1.0], "f"))

        def function(x):
            y, = Product().apply((F.sin(x), w, x))
            if inside:
                w.array = w.array * 0.5
            return y

        compiled, found = compile(function), []
        for i in range(3):
            x = chainer.Variable(np.array([1, 2, 3], "f") * 0.3 - i)
            y = compiled(x)
            if not inside:
                w.array = w.array * 0.5
            first = chainer.grad([F.sum(y * y)], [x, w], enable_double_backprop=True)
            found += [g.array for g in (*first, *chainer.grad([sum(F.sum(g * g) for g in first)], [x, w]))]
        return found

    for eager, compiled in zip(gradients(lambda f: f), gradients(lambda f: to_static(f, backend=backend))):
        np.testing.assert_allclose(compiled, eager, 1e-5, 1e-6)


@pytest.mark.parametrize("function", [Scaled, Product, Both], ids=lambda function: function.__name__)
def test_one_function_is_differentiated_without_a_search(monkeypatch, function):
    """Of both outputs, the second alone has a gradient; in debug mode, Chainer's own backward runs."""
    count, once = [], opaque._gradients_of
    monkeypatch.setattr(opaque, "_gradients_of", lambda *args: count.append(args) or once(*args))
    inputs = [array(2, 3, seed=k) for k in range(3 if function is Product else 2)]

    def gradients(w):
        w.cleargrad()
        loss = F.sum(function().apply((w, *inputs[1:]))[-1] ** 2)
        loss.backward()
        return w.grad.copy()
    static = to_static(gradients, backend="numpy")
    expected = gradients(variable(2, 3))
    for _ in range(3):
        np.testing.assert_array_equal(static(variable(2, 3)), expected)
    assert count
    found = len(count)
    with chainer.using_config("debug", True):
        np.testing.assert_array_equal(static(variable(2, 3)), expected)
    assert len(count) == found
