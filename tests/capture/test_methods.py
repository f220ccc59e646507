"""Methods, properties and decorators inside compiled code."""
import contextlib
import functools

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import check, programs, signs
from function_objects import LOG, Base, Box, Derived, fresh_log


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


@pytest.mark.parametrize("make", programs(globals()), ids=lambda make: make.__name__)
def test_methods(make):
    check(make, signs(), compiled=True)
