"""Guards: whatever a program relied on is checked at every call, wherever it was read and however it is changed."""
import abc
import collections
import dataclasses
import enum
import functools
import math
import sys
import types
import typing

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, check, variable

from dy2static import to_static

SCALE = 1.0
TABLE = {"a": 1.0}
NAMES = ["a"]
HERE = sys.modules[__name__]


class Box:
    """An object with a ``__dict__`` and nothing else."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def changing(function, make_roots, *changes, args=lambda: (variable(2, 3),)):
    """A program over roots, and calls before each of which one more change is made to them."""
    def make(compile):
        roots = make_roots()
        return compile(bound(function, roots)), roots

    def call(change):
        def prepared(roots):
            change(roots)
            return args()
        return prepared
    return make, [call(lambda roots: None)] * 2 + [call(c) for change in changes for c in (change, lambda roots: None)]


def bound(function, roots):
    """``function(roots, x)`` as a function of x that reads ``roots`` from a closure."""
    def program(*args):
        return function(roots, *args)
    return program


def setter(name, value):
    def change(roots):
        setattr(roots, name, value() if isinstance(value, types.LambdaType) else value)
    return change


# --- values ------------------------------------------------------------------------------------------------------------------

def times_n(box, x):
    return x * box.n, box.n, type(box.n)


def with_options(box, x):
    if box.n is None:
        return x
    if isinstance(box.n, str):
        return x, box.n + "!"
    if isinstance(box.n, bool):
        return -x if box.n else x
    return x * box.n


def divides(box, x):
    return x * 2, 1.0 / box.n if box.n else str(box.n)


def rounds(box, x):
    return x * round(box.n), int(box.n), abs(box.n), -box.n, box.n // 1, box.n ** 2, 2 * box.n - 1 / (box.n + 0.5)


def compares(box, x):
    return x, box.n > 2, box.n == 3, (box.n > 2) is True, box.n == np.int64(3), box.n in (3, 4), box.n != "a", type(box.n > 2)


def with_numpy_scalars(box, x):
    a = box.n * np.float32(2)
    b = np.float32(2) * box.n
    c = np.float64(1) + box.n
    return x * 2, a, b, c, np.sqrt(box.n), np.maximum(box.n, 2), np.float32(box.n), np.array(box.n), np.array([box.n, 1])


def as_shape(box, x):
    return F.reshape(x, (box.n, -1)), np.zeros(box.n), list(range(box.n)), [0, 1, 2, 3, 4, 5, 6][box.n], x[:, :box.n], "ab" * box.n


def as_text(box, x):
    print(box.n, f"{box.n:>6}", str(box.n), "%s %r" % (box.n, box.n), "{}".format(box.n))
    return x * 2


def as_key(box, x):
    d = {1: "one", 2.5: "two", 3: "three"}
    return x, d.get(box.n), {box.n: 1}, {box.n}, (box.n,), [box.n]


def as_options(box, x):
    return F.leaky_relu(x, box.n), F.dropout(x, 0.0 * box.n), F.clip(x, -abs(float(box.n)) - 0.1, abs(float(box.n)) + 0.1), x ** box.n


def accumulates(box, x):
    box.n += 1
    box.total = box.total * 0.5 + box.n
    return x * box.total


def catches(box, x):
    try:
        return x * 2, 10 / (box.n - 1), math.sqrt(box.n - 3), 2 ** (box.n - 4), 1 << (box.n - 2), round(1 / (box.n - 5))
    except (ZeroDivisionError, ValueError) as error:
        return x, str(error)


NUMBERS = [3, 4, 2.5, -0.0, 0.0, True, 1, 10 ** 30, float("nan"), float("inf"), -7]
SMALL = [3, 4, 1, 2, 6]

CASES = {
    "values": changing(with_options, lambda: Box(n=None), *[setter("n", v) for v in (2, 3.0, True, False, 1, 0, "a", "b", None)]),
    "numbers": changing(times_n, lambda: Box(n=2), *[setter("n", v) for v in NUMBERS if v == v and abs(v) < 1e9]),
    "signed zero": changing(divides, lambda: Box(n=-0.0), *[setter("n", v) for v in (0.0, -0.0, 1.0, 2.0, 0.0, -0.0)]),
    "rounding": changing(rounds, lambda: Box(n=2.5), *[setter("n", v) for v in (3.5, 4.5, 3, 4, -2.5)]),
    "zero division": changing(lambda box, x: x * (1 / box.n), lambda: Box(n=2), *[setter("n", v) for v in (3, 4, 0, 5)]),
    "write before zero division": changing(lambda box, x: (setattr(box, "k", box.n), x * (1 / box.n))[1], lambda: Box(n=2, k=0),
                                           *[setter("n", v) for v in (3, 4, 0, 5)]),
    "errors that are caught": changing(catches, lambda: Box(n=8), *[setter("n", v) for v in (9, 10, 1, 11, 2, 12, 5, 13, 1, 700, 7)]),
    "overflow": changing(lambda box, x: x * (box.n ** 2), lambda: Box(n=2.0), *[setter("n", v) for v in (3.0, 4.0, 1e300, 5.0)]),
    "comparisons": changing(compares, lambda: Box(n=2), *[setter("n", v) for v in SMALL]),
    "numpy scalars": changing(with_numpy_scalars, lambda: Box(n=2), *[setter("n", v) for v in (3, 4, 5, 2.5, 3.5)]),
    "shapes": changing(as_shape, lambda: Box(n=2), *[setter("n", v) for v in (3, 1, 6, 2)]),
    "text": changing(as_text, lambda: Box(n=2), *[setter("n", v) for v in (3, 4, 2.5, 1.0)]),
    "keys": changing(as_key, lambda: Box(n=2), *[setter("n", v) for v in (3, 1, 1.0, 2.5, True)]),
    "options": changing(as_options, lambda: Box(n=2), *[setter("n", v) for v in (3, 1, 0.5, 0.25)]),
    "counters": changing(accumulates, lambda: Box(n=0, total=0.0), lambda roots: None, setter("n", 10.5), setter("n", 7)),
    "huge": changing(lambda box, x: (x * 2, box.n + 1, box.n * box.n), lambda: Box(n=2), *[setter("n", v) for v in (3, 2 ** 62, 2 ** 63, 10 ** 40, 5)]),
    "huge times": changing(lambda box, x: x * box.n, lambda: Box(n=2), *[setter("n", v) for v in (3, 2 ** 62, 2 ** 64, 10 ** 30, 5)]),
    "nan": changing(times_n, lambda: Box(n=float("nan")), setter("n", 1.0), setter("n", float("nan")), setter("n", 2.0), setter("n", float("inf"))),
    "numpy scalar": changing(times_n, lambda: Box(n=np.float32(2)), *[setter("n", v) for v in (
        np.float32(3), np.float64(3), np.int64(3), 3, np.float32("nan"), np.array(3, "f"))]),
    "strings": changing(lambda box, x: (x, box.n.upper()), lambda: Box(n="a"), setter("n", "b"), setter("n", b"b")),
    "complex": changing(lambda box, x: (x, box.n), lambda: Box(n=1j), setter("n", 2j), setter("n", complex(0, -0.0)), setter("n", 0j)),
    "ranges": changing(lambda box, x: (x, box.n.start, sum(box.n)), lambda: Box(n=range(0)), setter("n", range(1, 1)), setter("n", range(3))),
    "frozensets": changing(lambda box, x: (x, sorted(map(repr, box.n))), lambda: Box(n=frozenset([1])), setter("n", frozenset([True])),
                           setter("n", frozenset([1.0]))),
    "sets": changing(lambda box, x: (x, sorted(map(repr, box.n))), lambda: Box(n={1}), setter("n", lambda: {True}), lambda b: b.n.add(2)),
}


class Color(enum.Enum):
    RED = 1
    BLUE = 2


CASES["enums"] = changing(lambda box, x: (x, box.n.name), lambda: Box(n=Color.RED), setter("n", Color.BLUE))


# --- where things are read from ------------------------------------------------------------------------------------------------

class Base:
    scale = 2.0

    def factor(self):
        return self.scale


class Child(Base):
    @property
    def twice(self):
        return self.scale * 2

    @classmethod
    def of_class(cls):
        return cls.scale

    @staticmethod
    def fixed():
        return 3.0

    def __getattr__(self, name):
        if name.startswith("extra"):
            return 5.0
        raise AttributeError(name)


def reads_everything(box, x):
    child = box.child
    return (x * child.factor(), child.twice, child.of_class(), type(child).scale, Child.scale, getattr(child, "scale"),
            child.fixed(), child.extra, getattr(child, "missing", 7), hasattr(child, "other"))


class restored:
    """Puts class attributes, globals and the like back after a test."""

    def __init__(self):
        self.saved = [(vars(HERE), dict(vars(HERE)))] + [(cls, dict(vars(cls))) for cls in (Base, Child)]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        vars(HERE).update(self.saved[0][1])
        for cls, attributes in self.saved[1:]:
            for name in set(vars(cls)) - set(attributes):
                delattr(cls, name)
            for name, value in attributes.items():
                if name not in ("__dict__", "__weakref__") and vars(cls).get(name) is not value:
                    setattr(cls, name, value)


CASES["class attributes"] = changing(
    reads_everything, lambda: Box(child=Child()), lambda b: setattr(Base, "scale", 3.0), lambda b: setattr(Child, "scale", 4.0),
    lambda b: setattr(b.child, "scale", 5.0), lambda b: delattr(b.child, "scale"), lambda b: delattr(Child, "scale"),
    lambda b: setattr(Base, "factor", lambda self: 9.0), lambda b: setattr(Child, "fixed", staticmethod(lambda: 8.0)),
    lambda b: setattr(Child, "twice", property(lambda self: 7.0)), lambda b: setattr(Child, "of_class", classmethod(lambda cls: 6.0)),
    lambda b: setattr(Child, "extra", 11.0), lambda b: setattr(b.child, "missing", 12), lambda b: setattr(b.child, "other", 12),
    lambda b: setattr(Child, "factor", lambda self: 10.0), lambda b: setattr(b, "child", Child()))


def reads_globals(box, x):
    return x * SCALE, TABLE["a"], NAMES[0], HERE.SCALE, len(NAMES), "b" in TABLE, helper_of_globals(x)


def helper_of_globals(x, factor=2.0, *, more=1.0):
    return x * factor + more


def replaced_helper(x):
    return x * 100


CASES["globals"] = changing(
    reads_globals, lambda: Box(), lambda b: setattr(HERE, "SCALE", 2.0), lambda b: TABLE.update(a=3.0), lambda b: NAMES.__setitem__(0, "c"),
    lambda b: NAMES.append("d"), lambda b: TABLE.update(b=1), lambda b: setattr(HERE, "helper_of_globals", replaced_helper),
    lambda b: setattr(HERE, "TABLE", {"a": 9.0}))


def defaults_changed(box, x):
    return box.f(x)


def with_default():
    def f(x, n=1.0, *, k=2.0):
        return x * n + k
    return f


CASES["defaults"] = changing(
    defaults_changed, lambda: Box(f=with_default()), lambda b: setattr(b.f, "__defaults__", (3.0,)),
    lambda b: setattr(b.f, "__kwdefaults__", {"k": 5.0}), lambda b: b.f.__kwdefaults__.update(k=6.0))


def swapped_code():
    def f(x):
        return x * 2

    def g(x):
        return x * 3
    return Box(f=f, g=g)


CASES["code replaced"] = changing(lambda box, x: box.f(x), swapped_code, lambda b: setattr(b.f, "__code__", b.g.__code__))


def closures():
    n, items, cls = 1.0, [1.0], Base

    def f(x):
        return x * n * items[0] * cls.scale

    def change(**new):
        nonlocal n, items, cls
        n, items, cls = new.get("n", n), new.get("items", items), new.get("cls", cls)
    return Box(f=f, change=change)


class Other:
    scale = 7.0


CASES["closures"] = changing(
    lambda box, x: box.f(x), closures, lambda b: b.change(n=2.0), lambda b: b.change(items=[3.0]),
    lambda b: b.change(cls=Other), lambda b: setattr(Other, "scale", 8.0))


def containers(box, x):
    total = x
    for item in box.items:
        total = total * item
    for key, value in box.table.items():
        total = total + value
        print(key)
    return total, box.pair[0], box.nested[0]["k"][1], len(box.items), box.items[-1]


CASES["containers"] = changing(
    containers, lambda: Box(items=[1.0, 2.0], table={"a": 1.0, "b": 2.0}, pair=(1, 2), nested=[{"k": (1, [2])}]),
    lambda b: b.items.append(3.0), lambda b: b.items.__setitem__(0, 5.0), lambda b: b.items.pop(), lambda b: b.items.reverse(),
    lambda b: b.table.update(c=3.0), lambda b: b.table.pop("a"), lambda b: b.table.update(a=1.0), lambda b: setattr(b, "pair", (3, 2)),
    lambda b: b.nested[0]["k"][1].append(3), lambda b: setattr(b, "items", (4.0,)), lambda b: setattr(b, "table", collections.OrderedDict(z=1.0)),
    lambda b: setattr(b, "table", {"q": 1.0}), lambda b: b.table.update({1: 1.0}), lambda b: (b.table.pop(1), b.table.update({True: 1.0})))


def model():
    chain = chainer.Chain(a=L.Linear(3, 3), b=L.Linear(3, 3))
    with chain.init_scope():
        chain.W = chainer.Parameter(array(3, seed=5))
    chain.a.W.array[...] = array(3, 3, seed=1)
    chain.b.W.array[...] = array(3, 3, seed=2)
    chain.add_persistent("scale", array(3, seed=3))
    return chain


def forward(chain, x):
    return F.tanh(chain.b(F.relu(chain.a(x)))) * chain.W * chain.scale


CASES["parameters"] = changing(
    forward, model, lambda m: setattr(m.W, "array", array(3, seed=6)), lambda m: m.W.array.__setitem__(0, 3.0),
    lambda m: m.a.W.array.__imul__(2), lambda m: setattr(m.a, "W", m.b.W), lambda m: setattr(m, "b", m.a), lambda m: m.a.disable_update(),
    lambda m: setattr(m, "scale", array(3, seed=7)), lambda m: setattr(m.W, "array", array(1, 3, seed=7)),
    lambda m: m.W.cleargrad(), lambda m: setattr(m, "scale", array(3, seed=7, dtype="d")))


def links_of(m, x):
    for child in m.children():
        x = child(x)
    return x, [name for name, _ in m.namedparams()]


def add_link(m):
    with m.init_scope():
        m.c = L.Linear(3, 3, initialW=array(3, 3, seed=8))


CASES["children"] = changing(links_of, model, add_link, lambda m: delattr(m, "a"))
CASES["sequential"] = changing(
    lambda s, x: s(x), lambda: chainer.Sequential(L.Linear(3, 3, initialW=array(3, 3)), F.relu),
    lambda s: s.append(F.tanh), lambda s: s.__setitem__(0, F.sigmoid), lambda s: s.pop(), lambda s: s.insert(0, L.Linear(3, 3, initialW=array(3, 3, seed=2))))
CASES["chain list"] = changing(
    lambda s, x: functools.reduce(lambda h, f: f(h), s, x), lambda: chainer.ChainList(L.Linear(3, 3, initialW=array(3, 3))),
    lambda s: s.append(L.Linear(3, 3, initialW=array(3, 3, seed=4))))


@dataclasses.dataclass
class Options:
    n: float = 1.0
    kind: str = "relu"


class Pair(typing.NamedTuple):
    n: float
    kind: str


def with_settings(box, x):
    return (F.relu if box.o.kind == "relu" else F.tanh)(x) * box.o.n


CASES["dataclass"] = changing(with_settings, lambda: Box(o=Options()), lambda b: setattr(b.o, "n", 2.0), lambda b: setattr(b.o, "kind", "tanh"),
                              setter("o", lambda: Options(3.0)), setter("o", lambda: Pair(4.0, "relu")))
CASES["named tuple"] = changing(with_settings, lambda: Box(o=Pair(1.0, "relu")), setter("o", Pair(2.0, "relu")), setter("o", Pair(2.0, "tanh")),
                                setter("o", Options(2.0, "tanh")))
CASES["namespace"] = changing(with_settings, lambda: Box(o=types.SimpleNamespace(n=1.0, kind="relu")), lambda b: setattr(b.o, "n", 2.0),
                              lambda b: setattr(b.o, "kind", "tanh"))


class Abstract(abc.ABC):
    @abc.abstractmethod
    def run(self, x):
        """What it does."""


class Doubles(Abstract):
    def run(self, x):
        return x * 2


class Mixin:
    def run(self, x):
        return super().run(x) + 1


class Mixed(Mixin, Doubles):
    pass


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.n = 3.0
        return made

    @property
    def level(cls):
        return 2.0


class WithMeta(metaclass=Meta):
    def run(self, x):
        return x * self.n * type(self).level


class Slots:
    __slots__ = ("n",)

    def __init__(self):
        self.n = 2.0

    def run(self, x):
        return x * self.n


class Callable:
    def __init__(self):
        self.n = 2.0

    def __call__(self, x):
        return x * self.n

    run = __call__


class Redirects:
    def __init__(self):
        self.inner = Callable()

    def __getattr__(self, name):
        return getattr(self.inner, name)


class Intercepts:
    n = 2.0

    def __getattribute__(self, name):
        return 3.0 if name == "n" else object.__getattribute__(self, name)

    def run(self, x):
        return x * self.n


class Descriptor:
    def __init__(self):
        self.n = 2.0

    def __get__(self, instance, owner):
        return self.n if instance is None else instance.k * self.n

    def __set__(self, instance, value):
        instance.k = value


class Described:
    d = Descriptor()
    k = 1.0

    def run(self, x):
        self.d = 3.0
        return x * self.d


CASES["classes"] = changing(
    lambda box, x: (box.o.run(x), isinstance(box.o, Abstract), isinstance(box.o, Doubles), type(box.o).__name__), lambda: Box(o=Doubles()),
    *[setter("o", make) for make in (lambda: Mixed(), lambda: WithMeta(), lambda: Slots(), lambda: Callable(), lambda: Redirects(),
                                     lambda: Intercepts(), lambda: Described(), lambda: types.SimpleNamespace(run=lambda x: x * 9))])
CASES["meta made inside"] = changing(lambda box, x: WithMeta().run(x), lambda: Box())
CASES["slots changed"] = changing(lambda box, x: box.o.run(x), lambda: Box(o=Slots()), lambda b: setattr(b.o, "n", 4.0))
CASES["partials"] = changing(
    lambda box, x: box.f(x), lambda: Box(f=functools.partial(F.leaky_relu, slope=0.5)), setter("f", lambda: functools.partial(F.leaky_relu, slope=0.25)),
    setter("f", lambda: functools.partial(F.clip, x_min=-0.5, x_max=0.5)), setter("f", lambda: F.tanh), setter("f", lambda: Callable()),
    setter("f", lambda: Callable().run), lambda b: setattr(b.f.__self__, "n", 5.0))


# --- arguments -------------------------------------------------------------------------------------------------------------------

def x_and(*rest):
    return lambda: (variable(2, 3), *rest)


def same_or_not(x, y):
    return x * y + x, x is y, x.array is y.array


def arrays_same(x, a, b):
    return x * 2, a is b, a + b


def keyword_order(x, **more):
    return x * sum(more.values()), list(more), more


def star(x, *rest, scale=2.0, **more):
    return x * scale + sum(rest), len(rest), sorted(more)


def result_is_argument(x, y, items):
    return x, F.dropout(y, 0.0), items, (x, x), items[0], +x, F.reshape(x, x.shape), F.identity(y)


def shared():
    x = variable(2, 3)
    return x, x


def both(call):
    return [call, lambda: (variable(2, 3), variable(2, 3, seed=1))]


def keywords(**more):
    return lambda: ((variable(2, 3),), more)


shared_array = array(2, 3)
ARGUMENTS = {
    "same or not": (same_or_not, [shared, lambda: (variable(2, 3), variable(2, 3, seed=1)), lambda: (chainer.Variable(shared_array), chainer.Variable(shared_array))]),
    "arrays same": (arrays_same, [lambda: (variable(2, 3), array(3), array(3, seed=1)), lambda: (variable(2, 3),) + (array(3),) * 2]),
    "keyword order": (keyword_order, [keywords(a=1, b=2), keywords(b=2, a=1), keywords(a=1), keywords(), keywords(a=1, b=3)]),
    "star": (star, [x_and(), x_and(1.0), x_and(1.0, 2.0), keywords(scale=3.0), keywords(z=1), keywords(y=1, z=2)]),
    "result is argument": (result_is_argument, [lambda: (variable(2, 3), variable(2, 3), [1, variable(3)])]),
    "dtypes": (lambda x: (x * 2, F.sum(x), x.array.mean(), x.array.dtype, x / 3), [
        (lambda d: lambda: (variable(2, 3, dtype=d),))(d) for d in "fdef"]),
    "ints": (lambda x: (x * 2, F.sum(x), x.array.mean()), [lambda: (chainer.Variable(np.arange(3)),), lambda: (chainer.Variable(np.arange(3, dtype="i")),),
                                                       lambda: (chainer.Variable(np.array([True, False])),)]),
    "shapes": (lambda x: (F.sum(x * 2, axis=-1), x.array * 2, x.shape, len(x)), [lambda: (variable(2, 3),), lambda: (variable(0, 3),), lambda: (variable(1, 3),),
                                                                               lambda: (variable(2, 0),), lambda: (variable(4),)]),
    "no dimensions": (lambda x: (x * 2, x.array + 1, type(x.array + 1), F.sum(x), x.array * 2, x.array.sum(), x.array[()], np.tanh(x.array), -x.array),
                      [lambda: (variable(),), lambda: (variable(dtype="d"),), lambda: (variable(1),)]),
    "results of reductions": (lambda a: (a.sum(), a.mean(axis=0), a.max(), a.argmax(), np.sum(a), a[0, 0], a[0], a.sum() * 2, a.sum() + np.float32(1), a.size, a.any(),
                                         a.sum(keepdims=True), np.add.reduce(a), a.T, a.astype("d"), a > 0, ~(a > 0), a.std()),
                              [lambda: (array(2, 3),), lambda: (array(2, 3, dtype="e"),), lambda: (array(2, 3, dtype="d"),), lambda: (array(2, 3, dtype="i", high=9),)]),
    "layouts": (lambda a: (a * 2, a.T, a.reshape(-1), a[::-1], F.relu(a), F.transpose(a), np.ascontiguousarray(a), a.copy(), a.ravel()),
                [lambda: (array(2, 3),), lambda: (np.asfortranarray(array(2, 3)),), lambda: (array(4, 6)[::2, ::2],), lambda: (array(3, 2).T,),
                 lambda: (np.broadcast_to(array(3), (2, 3)),)]),
    "requires grad": (lambda x, y: (x * y, F.relu(y), x + 1), [
        (lambda p, q: lambda: (variable(2, 3, requires_grad=p), variable(2, 3, seed=1, requires_grad=q)))(p, q) for p in (True, False) for q in (True, False)]),
    "array or variable": (lambda x: F.relu(x) * 2, [lambda: (variable(2, 3),), lambda: (array(2, 3),)]),
    "none": (lambda x, m: x if m is None else x * m, [lambda: (variable(2, 3), None), lambda: (variable(2, 3), 2.0), lambda: (variable(2, 3), array(3)),
                                                     lambda: (variable(2, 3), variable(3))]),
    "wrong count": (lambda x: x * 2, [lambda: (variable(2, 3),), lambda: (), lambda: (variable(2, 3), 1), keywords(y=1), lambda: (variable(2, 3),)]),
    "nested": (lambda t: (t[0] * t[1]["k"][0], t), [lambda: ((variable(2, 3), {"k": [2.0]}),), lambda: ((variable(2, 3), {"k": [3.0]}),),
                                                   lambda: ((variable(2, 3), {"k": [4.0]}),), lambda: ((variable(2, 3), {"k": [variable(3)]}),)]),
    "big endian": (lambda a: a * 2, [lambda: (array(3),), lambda: (array(3).astype(">f4"),)]),
    "objects": (lambda a: a, [lambda: (np.array([None, 1], object),), lambda: (np.array(["a"]),), lambda: (np.array([1j]),), lambda: (np.ma.array([1.0]),)]),
}


@pytest.mark.parametrize("name", CASES)
def test_changes(name):
    make, calls = CASES[name]
    with restored(), np.errstate(all="ignore"):
        eager_globals = dict(vars(HERE))
        TABLE.clear(), TABLE.update(a=1.0), NAMES.clear(), NAMES.append("a")

        def fresh(compile):
            vars(HERE).update(eager_globals)
            TABLE.clear(), TABLE.update(a=1.0), NAMES.clear(), NAMES.append("a")
            Other.scale = 7.0
            for cls, attributes in saved:
                for extra in set(vars(cls)) - set(attributes):
                    delattr(cls, extra)
                for key, value in attributes.items():
                    if key not in ("__dict__", "__weakref__") and vars(cls).get(key) is not value:
                        setattr(cls, key, value)
            return make(compile)
        saved = [(cls, dict(vars(cls))) for cls in (Base, Child)]
        check(fresh, calls, rounds=1)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name):
    function, calls = ARGUMENTS[name]
    with np.errstate(all="ignore"):
        check(lambda compile: (compile(function), None), calls, rounds=3)


CONFIGS = [{}, {"train": False}, {"enable_backprop": False}, {"dtype": np.float64}, {"type_check": False}, {"debug": True}, {"mine": 3}, {}]


def test_config():
    def f(x):
        scale = getattr(chainer.config, "mine", 1)
        return F.dropout(x, 0.5) * scale, chainer.config.train, F.sum(x), L.Linear

    def calls():
        for config in CONFIGS:
            def call(_, config=config):
                for name in ("train", "enable_backprop", "dtype", "type_check", "debug", "mine"):
                    vars(chainer.config._local).pop(name, None)
                vars(chainer.config._local).update(config)
                return (variable(2, 3),)
            yield call
    before = dict(vars(chainer.config._local))
    try:
        check(lambda compile: (compile(f), None), list(calls()), rounds=2)
    finally:
        vars(chainer.config._local).clear()
        vars(chainer.config._local).update(before)


def test_numbers_that_are_no_numbers():
    """NaN differs from itself: a program for it is found again, and not by other numbers."""
    def f(x, n):
        return x * 2 + n if n else x

    compiled = to_static(f, strict=True)
    x = np.ones(2, "f")
    for n in (0.5, 1.5, float("nan"), 2.5, float("nan"), 0.0, -0.5):
        np.testing.assert_array_equal(compiled(x, n), f(x, n))
    assert compiled.stats()["fallbacks"] == 0


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_gradients_of_bounds_that_change(backend):
    """The gradient is multiplied by whether an element is inside: NaN stays NaN outside, too.  Two orders."""
    static = to_static(F.clip, backend=backend, strict=True)
    x = np.array([math.nan, math.inf, -math.inf, 0.5, 2, 3, -1, -2], "f")
    for high in (1.0, 2.0, 3.0, 2.5):
        for low in (None, -1.0):
            found = []
            for function in (F.clip, static):
                v, gy = chainer.Variable(x), chainer.Variable(np.array([math.nan, math.inf, 1, 2, 3, 4, 5, math.nan], "f"))
                y = function(v, low, high)
                gx, = chainer.grad([y], [v], [gy], enable_double_backprop=True)
                ggy, = chainer.grad([gx], [gy], [chainer.Variable(x + 1)])
                found.append([each.array for each in (y, gx, ggy)])
            for a, b in zip(*found):
                np.testing.assert_array_equal(a, b)
    assert static.cache_info().captures < 8
