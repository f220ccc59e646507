"""Functions of every kind inside compiled code: how they take arguments, where they live, and what they give."""
import contextlib
import functools
import itertools
import json  # noqa: F401 - asked for by name
import operator
import sys
import types

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import check, programs, variable

from dy2static import FallbackWarning, to_static
from dy2static.heap import ownership

LOG = []


def fresh_log():
    """The list that is written to, empty."""
    LOG.clear()
    return LOG


class Box:
    """An object with a ``__dict__`` and nothing else."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def signs(count=3):
    """Calls with Variables of positive, negative and mixed contents."""
    return [lambda low=low, high=high, k=k: (variable(count, seed=k, low=low, high=high),)
            for k, (low, high) in enumerate(((0.1, 1), (-1, -0.1), (-1, 1), (-0.2, 1.2)))]


# --- arguments --------------------------------------------------------------------------------------------------------


def parameters_of_all_kinds(compile):
    def g(a, b=2.0, /, c=3.0, *rest, d, e=5.0, **more):
        return a * b + c + sum(rest) * d + e + sum(more.values())

    def f(x):
        return g(x, d=1.5), g(x, 1.0, 2.0, x, 4.0, d=x, e=0.5, z=x, y=1.0)
    return compile(f)


def arguments_of_the_function_itself(compile):
    def f(x, /, n=2, *rest, scale=1.5, **more):
        y = x * n * scale
        for part in rest:
            y = y + part
        return y, len(rest), sorted(more), {name: x + value for name, value in more.items()}
    made = compile(f)

    def call(x):
        return made(x), made(x, 3), made(x, 3, x, 2.0, scale=0.5), made(x, b=1.0, a=2.0), made(x, **{"n": 4})
    return call


def unpacked_arguments(compile):
    def g(a, b, *rest, c=0.0, **more):
        return a + b * 2 + len(rest) + c, more

    def f(x):
        pair, names = (x, 2.0), {"c": x * 3, "d": 1}
        return g(*pair), g(*pair, *pair, **names), g(*[x, x], **{"c": 1.0}, **{"e": x})
    return compile(f)


def default_is_made_once(compile):
    def g(x, seen=[]):
        seen.append(len(seen))
        return x * len(seen)

    def f(x):
        return g(x) + g(x)
    return compile(f), g.__defaults__


def default_is_a_variable(compile):
    weight = chainer.Parameter(np.array([1, 2, 3], "f"))

    def f(x, w=weight, *, b=weight):
        return x * w + b
    return compile(f), [weight]


def default_of_a_nested_function(compile):
    def f(x):
        functions = [lambda y, k=k: y * k for k in range(1, 4)]
        return [g(x) for g in functions]
    return compile(f)


def wrong_arguments(compile):
    def g(a, *, b):
        return a + b

    def f(x):
        LOG.append("before")
        return g(x, 2.0)
    return compile(f), fresh_log()


# --- lambdas, closures, nested and recursive functions ------------------------------------------------------------------


def lambdas(compile):
    double = lambda y: y * 2

    def f(x):
        positive = lambda y: F.relu(y) if float(y.array.sum()) > 0 else F.tanh(y)
        return positive(double(x)), (lambda *parts, **named: sum(parts) + named["z"])(x, x, z=1.0), sorted([3, 1, 2], key=lambda n: -n)
    return compile(f)


def a_lambda_is_compiled(compile):
    return compile(lambda x, k=2: F.relu(x * k) if x.array.sum() > 0 else x)


def lambdas_of_one_line(compile):
    first, second, third = (lambda x: x + 1), (lambda x: x * 2), (lambda x: F.relu(x) if x.array.max() > 0.5 else -x)
    return compile(lambda x: (first(x), second(x), third(x)))


def closures(compile):
    scale = [1.0]

    def make(k):
        def inner(y):
            return y * k + scale[0]
        return inner
    double, triple = make(2.0), make(3.0)

    def f(x):
        scale[0] += 1.0
        return double(x) + triple(x) + make(4.0)(x)
    return compile(f), scale


def nonlocal_in_a_branch(compile):
    total, calls = 0.0, 0

    def f(x):
        nonlocal total, calls
        calls += 1

        def add(y):
            nonlocal total
            if y.array.sum() > 0:
                total = float(y.array.sum())
            return y + total
        return add(x) + add(-x), calls
    return compile(f)


def closure_of_a_loop(compile):
    def f(x):
        found = []
        for k in range(3):
            def g(y):
                return y * k
            found.append(g)
        return [g(x) for g in found]
    return compile(f)


def a_cell_written_in_a_loop(compile):
    def f(x):
        h, steps = x, 0

        def step():
            nonlocal h, steps
            h, steps = h * 0.5, steps + 1
        while float(abs(h.array).sum()) > 0.3:
            step()
        return h, steps
    return compile(f)


def recursive(compile):
    def power(x, n):
        return x if n <= 1 else power(x, n - 1) * x

    def f(x):
        def fold(parts):
            if not parts:
                return 0.0
            return parts[0] + fold(parts[1:])
        return power(x, 4), fold([x, x * 2, x * 3])
    return compile(f)


def mutually_recursive(compile):
    def even(x, n):
        return x if n == 0 else odd(x * 2, n - 1)

    def odd(x, n):
        return -x if n == 0 else even(x + 1, n - 1)

    def f(x):
        return even(x, 5) + odd(x, 3)
    return compile(f)


class Tree:
    """A binary tree: a leaf holds a number of a word."""

    def __init__(self, left=None, right=None, word=None):
        self.left, self.right, self.word = left, right, word


class TreeNet(chainer.Chain):
    """Composes the vectors of a tree, children first."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(6, 4, initialW=np.linspace(-1, 1, 24, dtype="f").reshape(6, 4))
            self.cell = L.Linear(8, 4, initialW=np.linspace(-0.5, 0.5, 32, dtype="f").reshape(4, 8))

    def forward(self, node):
        if node.word is not None:
            return self.embed(np.array([node.word], "i"))
        h = F.concat((self.forward(node.left), self.forward(node.right)))
        h = self.cell(h)
        return F.tanh(h) if float(h.array.sum()) > 0 else F.sigmoid(h)


def recursive_method(compile):
    model = TreeNet()
    f = compile(lambda tree: model(tree))
    tree = Tree(Tree(Tree(word=1), Tree(word=2)), Tree(Tree(word=3), Tree(Tree(word=4), Tree(word=5))))
    return lambda x: f(tree) + x[0], [model]


def compiled_recursive_method(compile):
    class Net(TreeNet):
        forward = compile(TreeNet.forward)
    model = Net()
    tree = Tree(Tree(Tree(word=1), Tree(word=2)), Tree(word=3))
    return lambda x: model(tree) + x[0], [model]


def tree_lstm(compile):
    cell, embed = L.ChildSumTreeLSTM(3, 3), L.EmbedID(6, 3)
    for k, param in enumerate([*cell.params(), *embed.params()]):
        if param.array is not None:
            param.array[...] = np.cos(np.arange(param.size, dtype="f") + k).reshape(param.shape)

    def walk(node):
        if node.word is not None:
            return cell(None, None, None, None, embed(np.array([node.word], "i")))
        (c0, h0), (c1, h1) = walk(node.left), walk(node.right)
        return cell(c0, c1, h0, h1, None)

    def f(tree):
        return walk(tree)[1]
    made, tree = compile(f), Tree(Tree(Tree(word=1), Tree(word=2)), Tree(word=3))
    return lambda x: made(tree) * F.sum(x), [cell, embed]


# --- methods, properties, super ------------------------------------------------------------------------------------------


class Base:
    """Methods of all kinds."""

    rate = 2.0

    def __init__(self, n):
        self.n, self._scale, self.log = n, 1.0, []

    def method(self, x):
        return x * self.n

    @classmethod
    def of_class(cls, x):
        return x * cls.rate

    @staticmethod
    def of_none(x, k=3.0):
        return x * k

    @property
    def scale(self):
        self.log.append("get")
        return self._scale

    @scale.setter
    def scale(self, value):
        self.log.append(("set", value))
        self._scale = value * 2

    @scale.deleter
    def scale(self):
        self.log.append("delete")
        self._scale = 0.0

    @functools.cached_property
    def doubled(self):
        self.log.append("computed")
        return self.n * 2

    def __call__(self, x):
        return self.method(x)


class Derived(Base):
    """Calls its base in every way."""

    rate = 3.0

    def __init__(self, n):
        super().__init__(n)
        super(Derived, self).__init__(n)
        Base.__init__(self, n + 1)

    def method(self, x):
        return super().method(x) + super(Derived, self).method(x) + Base.method(self, x)

    @classmethod
    def of_class(cls, x):
        return super().of_class(x) + super(Derived, cls).of_class(x) + 1

    @staticmethod
    def of_none(x):
        return Base.of_none(x, 2.0)

    @property
    def scale(self):
        return super().scale + 1

    @scale.setter
    def scale(self, value):
        Base.scale.fset(self, value)


class Mixin:
    """In the middle of a diamond."""

    def method(self, x):
        return super().method(x) - 1.0


class Diamond(Mixin, Derived):
    """Mixin before Derived."""

    def method(self, x):
        def inner():
            return [super(Diamond, self).method(y) for y in (x, -x)]
        return super().method(x) + inner()[0]


def methods(compile):
    boxes = [Base(2.0), Derived(3.0), Diamond(4.0)]

    def f(x):
        y = x
        for box in boxes:
            y = y + box.method(x) + box.of_class(x) + box.of_none(x) + type(box).of_class(x) + box(x)
            bound = box.method
            y = y + bound(x) * bound.__self__.n + type(box).method(box, x)
        return y
    return compile(f), boxes


def properties(compile):
    boxes = [Base(2.0), Derived(3.0)]

    def f(x):
        for box in boxes:
            box.scale = 1.5
            x = x * box.scale
            box.scale += 1.0
        del boxes[0].scale
        return x * boxes[0].scale
    return compile(f), boxes


def cached_properties(compile):
    box = Base(2.0)

    def f(x):
        return x * box.doubled + box.doubled
    return compile(f), box


def made_inside_with_super(compile):
    def f(x):
        box = Diamond(2.0)
        box.scale = 2.0
        return box.method(x) + box.of_class(x) * box.scale + box.doubled
    return compile(f)


def property_of_an_array(compile):
    class Net(chainer.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.W = chainer.Parameter(np.arange(3, dtype="f"))

        @property
        def norm(self):
            return F.sqrt(F.sum(self.W * self.W))

        @property
        def large(self):
            return float(self.norm.array) > 1

        def forward(self, x):
            return x / self.norm if self.large else x
    net = Net()
    return compile(lambda x: net(x)), [net]


# --- decorators ------------------------------------------------------------------------------------------------------------


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        LOG.append(function.__name__)
        return function(*args, **kwargs)
    return wrapper


def scaled(k):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(x, *args, **kwargs):
            return function(x * k, *args, **kwargs)
        return wrapper
    return decorate


class Counting:
    """A decorator that is a class."""

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function, self.calls = function, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


def decorators_below(compile):
    @compile
    @logged
    @scaled(2.0)
    def f(x):
        return F.relu(x) if x.array.sum() > 0 else x
    return f, fresh_log()


def decorators_above(compile):
    @logged
    @scaled(2.0)
    @compile
    def f(x):
        return F.relu(x) if x.array.sum() > 0 else x
    return f, fresh_log()


def decorators_on_both_sides(compile):
    @scaled(3.0)
    @compile
    @logged
    def f(x):
        return F.relu(x) if x.array.sum() > 0 else x
    return f, fresh_log()


def compiled_twice(compile):
    @compile
    @compile
    def f(x):
        return F.relu(x) if x.array.sum() > 0 else x
    return f


def compiled_calls_compiled(compile):
    @compile
    def g(x, k):
        return x * k if x.array.sum() > 0 else x

    @compile
    @scaled(2.0)
    def f(x):
        return g(x, 2.0) + g(-x, k=3.0)
    return f


def decorator_is_an_object(compile):
    @Counting
    def g(x):
        return x * 2

    @compile
    def f(x):
        return g(x) + g(x) * g.calls
    return f, g.__dict__


def context_manager_decorates(compile):
    @contextlib.contextmanager
    def noted(name):
        LOG.append(("enter", name))
        yield
        LOG.append(("exit", name))

    @noted("inner")
    def g(x):
        return x * 2

    @compile
    def f(x):
        return g(x)
    return f, fresh_log()


def cached_numbers(compile):
    @functools.lru_cache(maxsize=None)
    def table(n):
        return tuple(1.0 / (k + 1) for k in range(n))

    @compile
    def f(x):
        return x * np.array(table(3), "f") + sum(table(2))
    return f


def decorated_methods(compile):
    class Net(chainer.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.l = L.Linear(3, 3, initialW=np.eye(3, dtype="f"))

        @logged
        def forward(self, x):
            return self.twice(self.l(x[None]))

        @compile
        @logged
        def other(self, x):
            return self.forward(x) if x.array.sum() > 0 else -self.forward(x)

        @staticmethod
        @logged
        def twice(x):
            return x * 2
    net = Net()
    return lambda x: net.other(x), [net, fresh_log()]


def compiled_static_and_class_methods(compile):
    class Tool:
        k = 2.0

        @staticmethod
        @compile
        def one(x):
            return x * 2 if x.array.sum() > 0 else x

        @classmethod
        @compile
        def two(cls, x):
            return x * cls.k

        @property
        @compile
        def three(self):
            return F.exp(chainer.Variable(np.ones(3, "f")))
    tool = Tool()
    return lambda x: (Tool.one(x), tool.one(x), Tool.two(x), tool.two(x))


def single_dispatch(compile):
    @functools.singledispatch
    def area(shape):
        return 1.0

    @area.register(Box)
    def _(shape):
        return shape.n

    @area.register(list)
    def _(shape):
        return sum(shape)
    box = Box(n=3.0)

    def f(x):
        return x * area(box) + area([1.0, 2.0]) + area(3)
    return compile(f), box


# --- callable things -----------------------------------------------------------------------------------------------------------


def partials(compile):
    def g(x, y, k=1.0, *, m=2.0):
        return x * y + k * m
    given = functools.partial(g, m=5.0)

    def f(x):
        inner = functools.partial(given, x)
        again = functools.partial(inner, k=3.0)
        return inner(2.0) + again(x) + functools.partial(F.clip, x_min=-0.5, x_max=0.5)(x) + given(x, x)
    return compile(f)


def partial_methods(compile):
    class Tool:
        def scale(self, x, k):
            return x * k
        double = functools.partialmethod(scale, k=2.0)
    tool = Tool()
    return compile(lambda x: tool.double(x) + tool.scale(x, 1.0))


def callable_objects(compile):
    box = Derived(2.0)

    def f(x):
        return box(x) + Derived(3.0)(x) + operator.methodcaller("method", x)(box) + operator.attrgetter("n")(box)
    return compile(f), box


def links(compile):
    rng = np.random.RandomState(0)

    def linear():
        return L.Linear(3, 3, initialW=rng.uniform(-1, 1, (3, 3)).astype("f"))
    layers = chainer.ChainList(linear(), linear(), linear())
    stack = chainer.Sequential(linear(), F.relu, lambda x: x * 2, functools.partial(F.clip, x_min=-1.0, x_max=1.0), linear())

    def f(x):
        h = x[None]
        for k, layer in enumerate(layers):
            h = layer(h) + k
        for layer in layers[1:]:
            h = layer(h)
        for layer in reversed(list(layers.children())):
            h = F.tanh(layer(h))
        for name, param in sorted(layers.namedparams()):
            h = h + F.sum(param) * len(name)
        return stack(h), stack[0](h), stack[1:][0](h), len(stack), len(layers)
    return compile(f), [layers, stack]


def sequential_compiled(compile):
    stack = chainer.Sequential(L.Linear(3, 4), F.relu, L.Linear(4, 2))
    for k, param in enumerate(stack.params()):
        param.array[...] = np.cos(np.arange(param.size, dtype="f") + k).reshape(param.shape)
    compile(stack)
    return lambda x: stack(x[None]), [stack]


def links_in_containers(compile):
    rng = np.random.RandomState(0)
    made = {name: L.Linear(3, 3, initialW=rng.uniform(-1, 1, (3, 3)).astype("f")) for name in "abc"}
    nested = [made["a"], (made["b"], {"c": made["c"]})]

    def f(x):
        h = x[None]
        for name in sorted(made):
            h = made[name](h)
        first, (second, rest) = nested
        return rest["c"](second(first(h)))
    return compile(f), list(made.values())


def functions_in_tables(compile):
    table = {"relu": F.relu, "tanh": F.tanh, "double": lambda y: y * 2}
    pair = (F.sigmoid, [F.exp, np.tanh])

    def f(x):
        for name in table:
            x = table[name](x)
        return pair[0](x), pair[1][0](x), pair[1][1](x.array), getattr(F, "softplus")(x), list(map(table["relu"], [x, -x]))
    return compile(f)


def higher_order(compile):
    def compose(*functions):
        return functools.reduce(lambda g, h: lambda *a: h(g(*a)), functions)

    def f(x):
        return compose(F.relu, lambda y: y + 1, F.tanh)(x), functools.reduce(operator.add, [x, x, x])
    return compile(f)


# --- generators ------------------------------------------------------------------------------------------------------------------


def generators(compile):
    def pieces(x, n):
        for k in range(n):
            yield x * k
        return None

    def chained(x):
        yield from pieces(x, 2)
        got = yield x + 10
        if got is not None:
            yield got * 2

    def f(x):
        total = sum(pieces(x, 3))
        g = chained(x)
        first, second, third = next(g), next(g), next(g)
        fourth = g.send(x * 7)
        rest = list(g)
        squares = (y * y for y in pieces(x, 3))
        return total, first, second, third, fourth, rest, max(len(str(k)) for k in range(12)), list(squares), next(iter([x]))
    return compile(f)


def generator_with_decision(compile):
    def halves(x):
        for k in range(4):
            if x.array.sum() > 0.5:
                x = x * 0.5
            yield x

    def f(x):
        total = 0.0
        for y in halves(x):
            total = total + F.sum(y)
        return total
    return compile(f)


def iterators(compile):
    class Steps:
        def __init__(self, x, n):
            self.x, self.n = x, n

        def __iter__(self):
            return self

        def __next__(self):
            if self.n == 0:
                raise StopIteration
            self.n -= 1
            return self.x * self.n

    class Many:
        def __init__(self, x):
            self.x = x

        def __iter__(self):
            yield self.x
            yield self.x * 2

        def __len__(self):
            return 2

    def f(x):
        return sum(Steps(x, 3)), list(Many(x)), [a + b for a, b in zip(Steps(x, 2), Many(x))], [*Many(x)], \
            list(itertools.chain(Many(x), Many(-x))), list(enumerate(Many(x), 1)), dict(zip("ab", Many(x)))
    return compile(f)


#: What stops a capture today: the call runs eagerly.
EAGER = {"callable_objects"}
FAILS = {"wrong_arguments"}


@pytest.mark.parametrize("make", programs(globals()), ids=lambda make: make.__name__)
def test_functions(make):
    check(make, signs(), compiled=None if make.__name__ in FAILS else make.__name__ not in EAGER)


def halved(v, steps=0):
    """As deep as the array says."""
    if float(v.array.sum()) > 1:
        return halved(v * 0.5, steps + 1)
    return v, steps


def test_recursion_that_arrays_end():
    """Recursion with a bound that is known is compiled; without, one message says so, and the call runs eagerly."""
    def bounded(v, depth):
        if depth == 0 or float(v.array.sum()) < 1:
            return v
        return bounded(v * 0.5, depth - 1) + bounded(v * 0.3, depth - 1)
    check(lambda compile: compile(lambda x: bounded(x, 4)), signs(), compiled=True)
    with pytest.warns(FallbackWarning, match="as deep as array values decide .*test_functions.py.*write a loop") as seen:
        y, steps = to_static(lambda x: halved(x))(variable(3, low=2, high=3))
    assert len(seen) == 1 and steps > 2 and float(y.array.sum()) < 1


def test_whose_modules_are_without_a_list_of_the_standard_library(monkeypatch):
    """As on Python 3.9: a module that is not imported, or has no file, is the user's."""
    monkeypatch.setattr(ownership, "_STDLIB_NAMES", frozenset())
    monkeypatch.setitem(sys.modules, "made_by_hand", types.ModuleType("made_by_hand"))
    assert all(map(ownership.is_library, ("json", "collections.abc", "sys", "time", "_frozen_importlib", "numpy.linalg")))
    assert not any(map(ownership.is_library, ("not_imported", "made_by_hand", "__main__", __name__)))
