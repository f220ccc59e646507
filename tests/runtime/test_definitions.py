"""What a program takes for granted of classes, modules and library functions may be replaced between two calls."""
import abc
import collections.abc
import dataclasses
import enum
import sys
import threading
import types
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest
from changed_states import X, outcome_of, plain, same_in_each_state

from dy2static import to_static
from dy2static.errors import FallbackWarning
from dy2static.runtime import definitions
from dy2static.runtime.definitions import Definitions

# --- classes -----------------------------------------------------------------------------------------------------------------

#: A special method, what it gives at first and then, and code that makes Python call it.
SPECIAL = {
    "__len__": (lambda self: 2, lambda self: 0, lambda box, x: len(box)),
    "__bool__": (lambda self: True, lambda self: False, lambda box, x: 1 if box else 2),
    "__getitem__": (lambda self, k: k, lambda self, k: k * 10, lambda box, x: box[3]),
    "__contains__": (lambda self, k: True, lambda self, k: False, lambda box, x: 3 in box),
    "__iter__": (lambda self: iter([1, 2]), lambda self: iter([5]), lambda box, x: list(box)),
    "__reversed__": (lambda self: iter([2, 1]), lambda self: iter([9]), lambda box, x: list(reversed(box))),
    "__call__": (lambda self, x: x * 2, lambda self, x: x * 3, lambda box, x: box(x)),
    "__getattr__": (lambda self, name: 2, lambda self, name: 3, lambda box, x: box.missing),
    "__setattr__": (lambda self, name, value: None, lambda self, name, value: object.__setattr__(self, name, value + 1),
                    lambda box, x: (setattr(box, "n", 5), box.n)[1]),
    "__delattr__": (lambda self, name: object.__setattr__(self, name, 7), lambda self, name: object.__setattr__(self, name, 8),
                    lambda box, x: (delattr(box, "n"), box.n)[1]),
    "__eq__": (lambda self, other: True, lambda self, other: False, lambda box, x: box == 3),
    "__ne__": (lambda self, other: True, lambda self, other: False, lambda box, x: box != 3),
    "__lt__": (lambda self, other: True, lambda self, other: False, lambda box, x: box < 3),
    "__ge__": (lambda self, other: True, lambda self, other: False, lambda box, x: box >= 3),
    "__hash__": (lambda self: 3, lambda self: 4, lambda box, x: hash(box)),
    "__add__": (lambda self, other: other * 2, lambda self, other: other * 3, lambda box, x: box + x),
    "__radd__": (lambda self, other: other * 2, lambda self, other: other * 3, lambda box, x: 2.0 + box),
    "__iadd__": (lambda self, other: other * 2, lambda self, other: other * 3, lambda box, x: iadd(box, x)),
    "__mul__": (lambda self, other: other * 2, lambda self, other: other * 3, lambda box, x: box * x),
    "__matmul__": (lambda self, other: other * 2, lambda self, other: other * 3, lambda box, x: box @ x),
    "__sub__": (lambda self, other: other * 2, lambda self, other: other * 3, lambda box, x: box - x),
    "__truediv__": (lambda self, other: other * 2, lambda self, other: other * 3, lambda box, x: box / x),
    "__pow__": (lambda self, other: other * 2, lambda self, other: other * 3, lambda box, x: box ** 2),
    "__neg__": (lambda self: 2, lambda self: 3, lambda box, x: -box),
    "__invert__": (lambda self: 2, lambda self: 3, lambda box, x: ~box),
    "__abs__": (lambda self: 2, lambda self: 3, lambda box, x: abs(box)),
    "__int__": (lambda self: 2, lambda self: 3, lambda box, x: int(box)),
    "__float__": (lambda self: 2.0, lambda self: 3.0, lambda box, x: float(box)),
    "__index__": (lambda self: 1, lambda self: 0, lambda box, x: [4, 5][box]),
    "__round__": (lambda self: 2, lambda self: 3, lambda box, x: round(box)),
    "__str__": (lambda self: "a", lambda self: "b", lambda box, x: str(box)),
    "__repr__": (lambda self: "a", lambda self: "b", lambda box, x: repr(box)),
    "__format__": (lambda self, spec: "a", lambda self, spec: "b", lambda box, x: f"{box}"),
    "__enter__": (lambda self: 2, lambda self: 3, lambda box, x: entered(box)),
    "__exit__": (lambda self, *error: True, lambda self, *error: False, lambda box, x: leaving(box)),
    "__next__": (lambda self: 2, lambda self: 3, lambda box, x: next(box)),
}
START = {"__enter__": lambda self: self, "__exit__": lambda self, *error: False, "__iter__": lambda self: self}


def iadd(box, x):
    box += x
    return box


def entered(box):
    with box as item:
        return item


def leaving(box):
    with box:
        raise ValueError("inside")
    return "swallowed"


def box_class(name, method):
    """A class with one special method, derived from a class without it."""
    base = type("Base", (), {"__module__": __name__})
    needed = START if name in ("__enter__", "__exit__") else {}
    return type("Box", (base,), {"__module__": __name__, "__init__": lambda self: self.__dict__.update(n=1),
                                 **needed, name: method})


@pytest.mark.parametrize("name", SPECIAL)
def test_special_methods_that_are_replaced_added_or_deleted(name):
    first, second, use = SPECIAL[name]
    cls = box_class(name, first)
    box = cls()
    same_in_each_state(lambda x: (use(box, x), x * 2), [
        lambda: setattr(cls, name, second), lambda: delattr(cls, name), lambda: setattr(cls.__base__, name, first),
        lambda: setattr(cls, name, second)], captured=name not in REFUSED)


#: What raises without the method, or is not compiled with it: calls in that state run eagerly.
REFUSED = set()


class Base:
    k = 2

    def act(self, x):
        return x * 2

    @property
    def rate(self):
        return 2

    @classmethod
    def of_class(cls, x):
        return x * cls.k

    @staticmethod
    def plain(x):
        return x * 2


class Derived(Base):
    def forward(self, x):
        return super().act(x) * super().k * super().rate + super().of_class(x) + super().plain(x)


class Further(Derived):
    pass


@pytest.fixture
def restored():
    """Classes and modules that are put back as they were after the test."""
    kept = [(item, dict(vars(item))) for item in (Base, Derived, Further, Reader, Shape, Meta, OfMeta, sys.modules[__name__])]
    names = [(item, item.__name__, item.__qualname__) for item, _ in kept if isinstance(item, type)]
    yield
    for item, item.__name__, item.__qualname__ in names:
        pass
    for item, before in kept:
        for name in list(vars(item)):
            if name not in before:
                delattr(item, name)
        for name, value in before.items():
            if vars(item).get(name) is not value:
                setattr(item, name, value)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_what_super_finds(restored, backend):
    item = Further()
    same_in_each_state(lambda x: item.forward(x), [
        lambda: setattr(Base, "act", lambda self, x: x * 3), lambda: setattr(Base, "k", 5), lambda: setattr(Base, "k", 2.5),
        lambda: setattr(Derived, "k", 7), lambda: setattr(Base, "rate", property(lambda self: 9)),
        lambda: setattr(Base, "of_class", classmethod(lambda cls, x: x * cls.k * 2)),
        lambda: setattr(Base, "plain", staticmethod(lambda x: x * 11)), lambda: setattr(Further, "act", Base.act),
        lambda: setattr(Further, "forward", lambda self, x: x)], backend)


def test_bases_that_are_replaced():
    one, other = type("One", (Base,), {}), type("Other", (Base,), {"k": 7})
    cls = type("Kid", (one,), {"__module__": __name__})
    item = cls()
    same_in_each_state(lambda x: x * item.k, [lambda: setattr(cls, "__bases__", (other,)), lambda: setattr(cls, "__bases__", (one,))])


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@pytest.fixture
def red():
    yield Color.RED
    Color.RED._value_ = 1
    vars(Color.RED).pop("weight", None)


def test_members_of_enums(red):
    red.weight = 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")                  # also those of the text of a guard
        assert plain(to_static(lambda x: x * red.weight)(X)) == plain(X * 2)
    same_in_each_state(lambda x: x * Color.RED.value * red.weight, [
        lambda: setattr(red, "weight", 3), lambda: setattr(red, "_value_", 5), lambda: setattr(red, "weight", 4.5)])


#: Python 3.13 keeps the version of a class that gets another name.
NEW_NAMES = [lambda: setattr(Further, "__name__", "Other"), lambda: setattr(Derived, "__qualname__", "A.B")]


def test_names_of_classes(restored):
    item = Further()
    same_in_each_state(lambda x: (x * 2, type(item).__name__, Derived.__qualname__, [c.__name__ for c in type(item).__mro__],
                                  Base.__module__, sorted(vars(Further)), Further.__bases__ == (Derived,)),
                       [*([] if sys.version_info >= (3, 13) else NEW_NAMES), lambda: setattr(Base, "__module__", "elsewhere"), lambda: setattr(Further, "one_more", 1)])


def tagged(x):
    return x * tagged.scale, tagged.name


def test_attributes_of_functions():
    def change(**attributes):
        return lambda: vars(tagged).update(attributes)
    change(scale=2.0, name="a")()
    same_in_each_state(lambda x: tagged(x), [change(scale=3.0), change(scale=0.5), change(scale=1.5, name="b"), change(name="c"),
                                             change(name="d")])


def test_entries_of_the_configuration_that_keep_their_value():
    def function(x):
        chainer.config.seen_by_me = True
        return x * 2
    compiled = to_static(function)
    try:
        for before in (True, True, -1, 2, 3, True):
            chainer.config.seen_by_me = before
            assert plain(compiled(X)) == plain(X * 2) and chainer.config.seen_by_me is True
    finally:
        del chainer.config.seen_by_me


def test_the_very_object_in_texts_and_hashes():
    def function(item, x):
        return x * 2, repr(item), f"{item}", hash(item)
    compiled, items = to_static(function), [Base(), Base()]
    for item in items * 2:
        assert plain(compiled(item, X)) == plain(function(item, X))
    assert compiled.stats()["fallbacks"] == 0


def test_a_method_of_an_object_of_a_library_does_not_leave():
    local = threading.local()
    local.kept = 1

    def function(x):
        return x * 2, local.kept
    compiled = to_static(function)
    with pytest.warns(FallbackWarning, match="'kept'"):
        assert plain(compiled(X)) == plain((X * 2, 1))
    local.kept = 2
    assert plain(compiled(X)) == plain((X * 2, 2))


class Reader:
    """A descriptor."""

    def __init__(self, k):
        self.k = k

    def __get__(self, item, cls):
        return self.k


class Writer(Reader):
    def __set__(self, item, value):
        self.k = value


def test_descriptors_and_their_classes(restored):
    cls = type("Owner", (), {"__module__": __name__, "rate": Reader(2), "kept": Writer(3)})
    item = cls()

    def function(x):
        item.kept = item.kept + 1
        return x * item.rate + item.kept

    def eager_and_compiled():
        compiled, states = to_static(function), []
        for change in (lambda: None, lambda: setattr(Reader, "__get__", lambda self, item, cls: self.k * 10),
                       lambda: setattr(vars(cls)["rate"], "k", 9), lambda: setattr(cls, "rate", Reader(5)),
                       lambda: setattr(Writer, "__set__", lambda self, item, value: setattr(self, "k", value * 2))):
            change()
            for run in (function, compiled, compiled):
                vars(cls)["kept"].k = 3
                states.append((plain(run(X)), vars(cls)["kept"].k))
        return states
    states = eager_and_compiled()
    for k in range(0, len(states), 3):
        assert states[k] == states[k + 1] == states[k + 2], k


class Shape(metaclass=abc.ABCMeta):
    """An abstract class."""

    @abc.abstractmethod
    def area(self):
        """What others define."""


COUNT = 3


class Meta(type):
    """A metaclass."""

    def __instancecheck__(cls, item):
        return True


class OfMeta(metaclass=Meta):
    """A class with that metaclass."""


def test_abstract_classes_that_register(restored):
    cls, later = type("Plain", (), {"__module__": __name__}), type("Late", (), {"__module__": __name__})
    item, other = cls(), later()
    same_in_each_state(
        lambda x: (isinstance(item, Shape), isinstance(other, (int, Shape)), issubclass(later, Shape),
                   isinstance(item, collections.abc.Sequence), isinstance(COUNT, Shape), isinstance(x.array, Shape), x),
        [lambda: Shape.register(int), lambda: Shape.register(np.ndarray), lambda: Shape.register(cls), lambda: Shape.register(later), lambda: collections.abc.Sequence.register(cls),
         lambda: Shape.register(type("Unrelated", (), {}))])


def test_metaclasses(restored):
    item = Base()
    same_in_each_state(lambda x: (x * 2 if isinstance(item, OfMeta) else x),
                       [lambda: setattr(Meta, "__instancecheck__", lambda cls, item: False),
                        lambda: delattr(Meta, "__instancecheck__")])


def test_items_of_a_dict_of_the_users():
    cls = type("Table", (dict,), {"__module__": __name__, "__missing__": lambda self, key: 2})
    table = cls(a=1)
    same_in_each_state(lambda x: x * table["a"] * table["b"], [lambda: setattr(cls, "__missing__", lambda self, key: 3)])


@dataclasses.dataclass
class Sized:
    n: int
    m: int = 2
    items: list = dataclasses.field(default_factory=list)


def test_defaults_of_a_dataclass():
    kept = Sized.__init__.__defaults__
    try:
        same_in_each_state(lambda x: x * Sized(3).m, [
            lambda: setattr(Sized.__init__, "__defaults__", (7, *kept[1:])), lambda: setattr(Sized.__init__, "__defaults__", kept)],
            captured=False)
    finally:
        Sized.__init__.__defaults__ = kept
    assert to_static(lambda x: x * Sized(3).m).program(X)


def test_what_makes_objects():
    cls = type("Made", (), {"__module__": __name__, "__new__": lambda cls, n: object.__new__(cls),
                            "__init__": lambda self, n: setattr(self, "n", n)})
    same_in_each_state(lambda x: x * cls(3).n, [
        lambda: setattr(cls, "__init__", lambda self, n: setattr(self, "n", n * 2)),
        lambda: setattr(cls, "__new__", staticmethod(lambda cls, n: types.SimpleNamespace(n=11)))])


def test_a_class_whose_data_change_in_every_call_is_captured_once():
    """What the program did not read is nothing to it, although the version of the class is another one each time."""
    cls = type("Counted", (), {"__module__": __name__, "count": 0, "scale": lambda self, x: x * 2})
    item = cls()
    compiled = to_static(lambda x: item.scale(x))
    for cls.count in range(2000):                       # CPython gives a class a thousand versions
        assert plain(compiled(X)) == plain(X * 2)
    cls.scale = lambda self, x: x * 3
    assert plain(compiled(X)) == plain(X * 3) and compiled.stats()["captures"] == 2


# --- global names that are deleted -------------------------------------------------------------------------------------------

def deletes(x, when=True):
    global FOR_A_WHILE
    FOR_A_WHILE = 2.0
    y = x * FOR_A_WHILE
    if when:
        del FOR_A_WHILE
    return y


def deletes_in_inner(x, when=True):
    def inner():
        global FOR_A_WHILE
        FOR_A_WHILE = 3.0
        if when:
            del FOR_A_WHILE
    inner()
    return x * 2


@pytest.mark.parametrize("function", [deletes, deletes_in_inner])
@pytest.mark.parametrize("before", [None, 1.0])
def test_globals_that_are_set_and_deleted(restored, function, before):
    compiled = to_static(function)
    for when in (True, False, True, True):
        left = []
        for run in (function, compiled, compiled):
            globals().pop("FOR_A_WHILE", None)
            if before is not None:
                globals()["FOR_A_WHILE"] = before
            left.append((plain(run(X, when)), globals().get("FOR_A_WHILE")))
        assert left[0] == left[1] == left[2]
    assert compiled.stats()["fallbacks"] == 0


# --- the record itself -------------------------------------------------------------------------------------------------------

def test_without_version_tags_everything_is_compared(monkeypatch):
    monkeypatch.setattr(definitions, "_HAS_TAGS", False)
    cls = type("Item", (), {"__module__": __name__, "scale": lambda self, x: x * 2})
    item = cls()
    same_in_each_state(lambda x: item.scale(x), [lambda: setattr(cls, "scale", lambda self, x: x * 3),
                                                 lambda: setattr(cls, "unread", 1)])


@pytest.mark.parametrize("owner, name", [(chainer.FunctionNode, "apply"), (chainer.Variable, "_init_impl")])
def test_what_captures_replace_for_a_while_is_replaced(monkeypatch, owner, name):
    """By somebody who counts calls, for example: these are made, and what does so is still there afterwards."""
    calls, original = [], getattr(owner, name)

    def counted(*args, **kwargs):
        calls.append(name)
        return original(*args, **kwargs)

    def function(x):
        return F.mean(F.exp(x) * 2)
    static = to_static(function)
    static(X)
    monkeypatch.setattr(owner, name, counted)
    function(X)
    expected, calls[:] = len(calls), []
    for compiled in (static, to_static(function)):
        with pytest.warns(FallbackWarning, match=f"{name} was replaced"):
            compiled(X)
    assert len(calls) == 2 * expected > 0 and getattr(owner, name) is counted
    monkeypatch.undo()
    static(X)
    assert len(calls) == 2 * expected and static.cache_info().captures == 1


@pytest.mark.parametrize("function", [definitions.unchanged, "native"])
def test_what_unchanged_sees(function):
    if function == "native":
        function = native_unchanged()
    cls, module = type("Item", (), {"one": plain}), types.ModuleType("some")
    module.name = len
    relied = Definitions()
    relied.add_class(cls)
    relied.add_name(module, "name")
    relied.add_function(iadd)
    assert function(relied.known) is True
    cls.two = 1
    assert function(relied.known) is False and not relied.changed() and function(relied.known) is True
    module.name = abs
    assert function(relied.known) is False and relied.difference() == "some.name was replaced"
    del module.name
    assert function(relied.known) is False and relied.changed()
    module.name = len
    assert function(relied.known) is True
    iadd.__defaults__ = (3,)
    assert function(relied.known) is False and relied.changed()
    iadd.__defaults__ = None
    assert function(relied.known) is True
    cls.one = outcome_of
    assert function(relied.known) is False and relied.changed() and relied.difference() == "Item.one was replaced"


def native_unchanged():
    from dy2static.native import compiler, hotpath
    from dy2static.program import hotpath as places
    try:
        return hotpath.functions(places._objects(), {"unchanged": definitions.unchanged})["unchanged"]
    except compiler.NoCompiler:
        pytest.skip("no C compiler here")


def test_why_a_call_was_captured_again():
    cls = type("Item", (), {"__module__": __name__, "scale": lambda self, x: x * 2})
    item = cls()
    compiled = to_static(lambda x: item.scale(x))
    compiled(X)
    cls.scale = lambda self, x: x * 3
    compiled(X)
    assert "Item.scale was replaced" in str(compiled.explain_misses()[-1])
