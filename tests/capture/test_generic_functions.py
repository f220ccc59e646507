"""Generic functions of `functools.singledispatch`, and weak references: read as attributes are, under guards."""
import functools
import weakref

import against_eager
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import variable
from chainer import Chain, Variable

from dy2static import load, save, to_static


class Plain:
    """An object of the user's."""


def generic():
    @functools.singledispatch
    def act(kind, x):
        return x

    @act.register(int)
    def _(kind, x):
        return x * kind

    @act.register(str)
    def _(kind, x):
        return getattr(F, kind)(x)

    @act.register(list)
    def _(kinds, x):
        for kind in kinds:
            x = act(kind, x)
        return x

    @act.register(Variable)
    def _(kind, x):
        return kind * x

    @act.register(np.ndarray)
    def _(kind, x):
        return kind - x

    return act


def by_type(compile):
    act = generic()
    act.scale = 2
    return compile(lambda kind, x: act(kind, x) * act.scale)


KINDS = (lambda: 2, lambda: 2.5, lambda: True, lambda: "relu", lambda: [3, "sigmoid"], lambda: None, Plain, lambda: np.ones(4, "f"),
         lambda: variable(4), dict)


def test_every_type():
    against_eager.check(by_type, [lambda kind=kind: (kind(), variable(4)) for kind in KINDS], compiled=True)


def test_registered_later():
    act = generic()
    function = to_static(lambda kind, x: act(kind, x))
    x, kind = variable(4), Plain()
    assert np.array_equal(function(kind, x).array, x.array)
    act.register(Plain, lambda kind, x: x * 100)
    assert np.allclose(function(kind, x).array, x.array * 100)
    assert function.cache_info().captures == 2


def test_attribute_of_a_generic_function():
    act = generic()
    act.scale = 2
    function = to_static(lambda x: act(None, x) * act.scale)
    assert np.allclose(function(variable(4)).array, variable(4).array * 2)
    act.scale = 3
    assert np.allclose(function(variable(4)).array, variable(4).array * 3)


def test_without_arguments():
    act = generic()
    with pytest.raises(TypeError, match="requires at least 1 positional argument"):
        to_static(lambda x: F.relu(x) + act())(variable(4))


class Net(Chain):
    """A Link whose method is generic."""

    def __init__(self):
        super().__init__()
        self.count = 0
        with self.init_scope():
            self.l = L.Linear(4, 4, initialW=np.eye(4))

    @functools.singledispatchmethod
    def forward(self, x):
        raise TypeError(f"no {type(x).__name__}")

    @forward.register(Variable)
    def _(self, x):
        self.count += 1
        return self.l(x) * self.scale("")

    @forward.register(list)
    def _(self, xs):
        return F.concat([self(x) for x in xs], axis=0)

    @functools.singledispatchmethod
    @classmethod
    def scale(cls, kind):
        return 1.0

    @scale.register
    @classmethod
    def _(cls, kind: str):
        return 2.0


def test_methods():
    def make(compile):
        net = Net()
        return compile(lambda x: F.sum(net(x))), [net]
    against_eager.check(make, [lambda: (variable(2, 4),), lambda: ([variable(2, 4), variable(1, 4)],), lambda: ("text",)])


class Child(Chain):
    """A Link that knows the one that it is in, as a weak reference."""

    def __init__(self, parent):
        super().__init__()
        self.parent = weakref.ref(parent)
        with self.init_scope():
            self.l = L.Linear(4, 4, initialW=np.eye(4))

    def forward(self, x):
        parent = self.parent()
        if parent is None:
            return self.l(x)
        parent.count += 1
        return self.l(x) * parent.scale


class Parent(Chain):
    """Holds a `Child`."""

    def __init__(self):
        super().__init__()
        self.scale, self.count = 2.0, 0
        with self.init_scope():
            self.child = Child(self)


def test_weak_reference_to_the_parent():
    def make(compile):
        parent = Parent()
        return compile(lambda x: F.sum(parent.child(x))), [parent]
    against_eager.check(make, [lambda: (variable(2, 4),)] * 3, compiled=True)


def test_end_of_the_referent():
    parent = Parent()
    child = parent.child
    function = to_static(lambda x: F.sum(child(x)))
    x = variable(2, 4)
    total = float(F.sum(x).array)
    assert np.isclose(float(function(x).array), 2 * total, rtol=1e-4)
    parent.scale = 3.0
    assert np.isclose(float(function(x).array), 3 * total, rtol=1e-4) and parent.count == 2
    child.parent = weakref.ref(other := Parent())
    assert np.isclose(float(function(x).array), 2 * total, rtol=1e-4) and (parent.count, other.count) == (2, 1)
    child.parent = weakref.ref(Parent())
    assert child.parent() is None and np.isclose(float(function(x).array), total, rtol=1e-4)


def test_saved(tmp_path):
    parent = Parent()
    function = to_static(lambda x: F.sum(parent.child(x)))
    expected = function(variable(2, 4)).array
    save(function, str(tmp_path / "model"))
    assert np.allclose(load(str(tmp_path / "model"))(variable(2, 4)).array, expected)


def test_array_behind_a_weak_reference():
    """It may end within a call, so it is Python's."""
    array = np.zeros(4, "f")
    reference = weakref.ref(array)

    def function(x):
        reference()[0] += 1
        return x * reference()
    compiled = to_static(function)
    for count in range(1, 4):
        assert compiled(variable(4)).array[0] == np.float32(variable(4).array[0] * count) and array[0] == count
