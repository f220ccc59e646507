"""Attributes of classes of every kind that hold what may change, and classes that are made and decorated inside."""
import abc
import copy
import copyreg
import enum
import types
import typing

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static

LOG = []


class Meta(type):
    pass


class WithSlots:
    __slots__ = ("h",)


class Pair(typing.NamedTuple):
    a: int = 1


class Failure(Exception):
    pass


class Items(dict):
    pass


class Count(int):
    pass


class OfMeta(metaclass=Meta):
    pass


class Net(chainer.Chain):
    pass


class Node(chainer.FunctionNode):
    pass


class Rule(typing.Protocol):
    pass


class Plain:
    pass


class Options(typing.TypedDict, total=False):
    rate: float


def appended(cls):
    def f(x):
        cls.log.append(len(cls.log))
        return F.relu(x) * len(cls.log), list(cls.log)
    return f


def appended_to_dunder(cls):
    def f(x):
        getattr(cls, "__log__").append(1)
        return F.relu(x) * len(cls.__log__), list(cls.__log__)
    return f


def agree(f, state, calls=3, **options):
    """Compare a compiled function with an eager one from the same state, which is a list, in lockstep."""
    x = chainer.Variable(np.arange(-1, 2, dtype="f"))
    runs = []
    for called in (f, to_static(f, backend="numpy", **options)):
        del state[:]
        runs.append([(called(x)[1:], list(state)) for _ in range(calls)])
    assert runs[0] == runs[1]


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
@pytest.mark.parametrize("make", [appended, appended_to_dunder])
@pytest.mark.parametrize("cls", [WithSlots, Pair, Failure, Items, Count, OfMeta, Net, Node, Rule, Plain])
def test_lists_of_classes(cls, make, monkeypatch):
    kept = []
    monkeypatch.setattr(cls, "log", kept, raising=False)
    monkeypatch.setattr(cls, "__log__", kept, raising=False)
    agree(make(cls), kept, strict=cls in (Net, Plain))


class Phase(enum.Enum):
    WARM = [1]
    COLD = 2

    def __init__(self, value):
        self.seen = []


class Fault(Exception):
    kept = ([], types.SimpleNamespace(n=0))


def value_of_a_member(x):
    Phase.WARM.value.append(1)
    return F.relu(x), len(Phase.WARM.value)


def attribute_of_a_member(x):
    Phase.COLD.seen.append(1)
    return F.relu(x), len(Phase.COLD.seen)


def tuple_of_a_class(x):
    Fault.kept[0].append(1)
    return F.relu(x), len(Fault.kept[0])


def object_of_a_class(x):
    Fault.kept[1].n += 1
    return F.relu(x), Fault.kept[1].n


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
@pytest.mark.parametrize("f", [value_of_a_member, attribute_of_a_member, tuple_of_a_class, object_of_a_class])
def test_what_is_behind_attributes(f):
    x = chainer.Variable(np.ones(3, "f"))
    compiled, before = to_static(f, backend="numpy"), f(x)[1]
    assert [compiled(x)[1] for _ in range(3)] == [before + 1, before + 2, before + 3]


class Annotated:
    a: int
    k: float = 1.0


class Derived(Annotated):
    pass


class Abstract(abc.ABC):
    @abc.abstractmethod
    def step(self):
        """Left to others."""


def what_classes_tell(x):
    return (F.relu(x), sorted(Annotated.__annotations__), Derived.__base__ is Annotated, Annotated.__base__ is object,
            "a" in Derived.__annotations__, Derived.mro()[1] is Annotated, sorted(Abstract.__abstractmethods__), Abstract.__class__ is abc.ABCMeta,
            type(Options(rate=2.0)) is dict)


def noted(made):
    LOG.append(made.__name__)
    return made


class Watching(Exception):
    def __init_subclass__(cls, **kwargs):
        LOG.append("derived")


class Making(type):
    def __new__(meta, name, bases, body):
        LOG.append("made")
        return super().__new__(meta, name, bases, body)


class Entry:
    def __set_name__(self, owner, name):
        LOG.append(name)


def decorated_function(x):
    @noted
    def doubled(y):
        return y * 2
    return doubled(x), 1


def decorated_class(x):
    @noted
    class Local:
        @staticmethod
        @noted
        def tripled(y):
            return y * 3
    return Local.tripled(x), 1


def watched_class(x):
    class Local(Watching):
        pass
    return F.relu(x), Local.__name__


def watched_class_without_statement(x):
    made = type("Local", (Watching,), {})
    return F.relu(x), made.__name__


def class_of_a_metaclass(x):
    class Local(metaclass=Making):
        k = 2
    return F.relu(x) * Local.k, 1


def class_body_reads_globals(x):
    class Local:
        entry = Entry()
        log = [len(LOG)]
        count = types.SimpleNamespace(n=len(LOG))
    return F.relu(x), Local.log, Local.count.n


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
@pytest.mark.parametrize(("f", "compiled"), [
    (what_classes_tell, True), (decorated_function, True), (decorated_class, True), (class_body_reads_globals, True),
    (watched_class, False), (watched_class_without_statement, False), (class_of_a_metaclass, False)])
def test_classes_that_are_asked_and_made(f, compiled):
    agree(f, LOG, strict=compiled)


class Named:
    pass


class Reduced:
    def __init__(self, value):
        self.value = value


def reduced(item):
    LOG.append(item.value)
    return Reduced, (item.value + 1,)


REDUCED = Reduced(1)


def copied(x):
    return F.relu(x) * copy.copy(REDUCED).value, copy.deepcopy([REDUCED])[0].value


def copied_once(x):
    return F.relu(x), copy.copy(REDUCED).value


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
@pytest.mark.parametrize(("f", "cls", "compiled"), [
    (copied, Reduced, False), (copied_once, Reduced, False), (copied_once, Named, True)])
def test_functions_of_copyreg(monkeypatch, f, cls, compiled):
    """Other classes than that of a shallow copy do not matter: many libraries have some there."""
    monkeypatch.setitem(copyreg.dispatch_table, cls, reduced)
    agree(f, LOG, strict=compiled)


def test_names_that_only_classes_have():
    """`cls.__name__` and `cls.mro` are of the metaclass: objects lack them, until the class has such an attribute itself."""
    class Named:
        pass

    holder = Named()

    @to_static(backend="numpy", strict=True)
    def named(x):
        return x * 2 if getattr(holder, "__name__", None) is None and not hasattr(holder, "mro") else x * 3

    x = np.ones(3, np.float32)
    assert [float(named(x)[0]), float(named(x)[0]), named.cache_info().captures] == [2, 2, 1]
    Named.mro = 1
    assert float(named(x)[0]) == 3


class CountingTanh(chainer.FunctionNode):
    """Counts its calls, as functions do to report now and then."""

    calls, scale = 0, 2.0

    def forward(self, inputs):
        type(self).calls += 1
        self.retain_inputs((0,))
        return np.tanh(inputs[0]) * self.scale,

    def backward(self, indexes, grads):
        return (1 - F.tanh(self.get_retained_inputs()[0]) ** 2) * grads[0] * self.scale,


class OldCountingTanh(chainer.Function):
    calls = 0

    def forward(self, inputs):
        OldCountingTanh.calls += 1
        return np.tanh(inputs[0]),

    def backward(self, inputs, grads):
        OldCountingTanh.calls += 1
        return (1 - np.tanh(inputs[0]) ** 2) * grads[0],


def counted(x):
    return OldCountingTanh()(CountingTanh().apply((x * 2,))[0]) + x


def counted_and_read(x):
    return CountingTanh().apply((x,))[0] * CountingTanh.calls


def read_of_the_function(x):
    function = CountingTanh()
    return function.apply((x,))[0] * function.calls


def read_by_its_name(x):
    return CountingTanh().apply((x,))[0] * getattr(CountingTanh, "calls")


def read_under_another_name(x):
    kind = CountingTanh
    return kind().apply((x,))[0] * kind.calls


class WithDefault(chainer.Function):
    length = 0

    def forward(self, inputs):
        self.length = len(inputs[0])
        return inputs[0] * 2,

    def backward(self, inputs, grads):
        return grads[0] * 2,


def left_in_the_function(x):
    function = WithDefault()
    return function(x) * function.length


READING = [counted_and_read, read_of_the_function, read_by_its_name, read_under_another_name, left_in_the_function]


@pytest.mark.parametrize("function, captures", [(counted, 1), *((function, None) for function in READING)],
                         ids=lambda item: getattr(item, "__name__", ""))
def test_counters_of_functions_that_stay_whole(function, captures):
    results = []
    for compile in (lambda f: f, to_static):
        CountingTanh.calls, OldCountingTanh.calls, found, compiled = 0, 0, [], compile(function)
        for k in range(8):
            if k == 6:
                CountingTanh.scale = 3.0
            x = chainer.Variable(np.full(3, k / 10, "f"))
            y = compiled(x)
            F.sum(y).backward()
            found.append((y.array, x.grad, CountingTanh.calls, OldCountingTanh.calls))
        CountingTanh.scale = 2.0
        results.append(found)
    for eager, staged in zip(*results):
        assert eager[2:] == staged[2:]
        np.testing.assert_allclose(eager[:2], staged[:2], rtol=1e-6)
    assert captures is None or compiled.stats()["captures"] <= captures + 1
