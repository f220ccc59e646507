"""Tables of guards: native code and Python give the same answers about the same objects, whatever becomes of these."""
import collections
import sys

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static
from dy2static.native import compiler, library
from dy2static.program import guards, hotpath
from dy2static.runtime import guard_tests

pytestmark = pytest.mark.skipif(not compiler.available() or bool(library._problem()),
                                reason="there is no C compiler on this machine, or another Python")


class State:
    shared = "of the class"

    def __init__(self):
        self.number, self.zero, self.word, self.pair, self.words = 3, 0.0, "w", (1, ("b", 2.5)), {"a", "b"}
        self.table, self.row, self.hooks = {"x": 1.5, "y": None}, [2, (3,)], collections.OrderedDict()
        self.other = self.row
        self.array = np.zeros(3, np.float32)
        self.limits = np.zeros((2, 2), np.float32)


class WithDefaults(State):
    """Reads of what is not there are answered by Python."""

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return 7


class Text(str):
    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


SCALE = 2.0
seen = "a"


def function(x, state, layer, times=1):
    y = layer(x) * SCALE * state.number + state.zero
    if state.word == "w" and state.pair[1][0] == "b" and state.words == {"a", "b"} and seen == "a":
        y = y + 1
    for name, value in state.table.items():
        y = y if value is None else y + value
    for name in state.hooks:
        y = y + len(name)
    if state.other is state.row and len(state.row) == 2 and "missing" not in state.table:
        y = y * state.row[0] + state.row[1][0]
    if layer.W.creator is None:
        y = y + 2
    state.array[...] = state.array + 1
    return F.sum(y * times) + state.limits.sum() + len(state.shared) + F.sum(layer.W.array * 0)


CHANGES = {
    "nothing": lambda s, m: None,
    "number": lambda s, m: setattr(s, "number", 4), "a bool": lambda s, m: setattr(s, "number", True),
    "a float": lambda s, m: setattr(s, "number", 3.0), "a NumPy number": lambda s, m: setattr(s, "number", np.float64(3)),
    "the other zero": lambda s, m: setattr(s, "zero", -0.0), "no number": lambda s, m: setattr(s, "zero", float("nan")),
    "word": lambda s, m: setattr(s, "word", "v"), "a word made anew": lambda s, m: setattr(s, "word", "xw"[1:]),
    "a text of the user's": lambda s, m: setattr(s, "word", Text("w")),
    "pair": lambda s, m: setattr(s, "pair", (1, ("b", 2))), "a pair made anew": lambda s, m: setattr(s, "pair", (1, ("b", 5 / 2))),
    "words": lambda s, m: s.words.add("c"), "other words": lambda s, m: (s.words.discard("a"), s.words.add("d")),
    "the same words": lambda s, m: (s.words.discard("a"), s.words.add("a")),
    "words of the user's": lambda s, m: setattr(s, "words", {Text("a"), "b"}),
    "another value": lambda s, m: s.table.update(x=2.5), "another key": lambda s, m: s.table.update(z=1),
    "the same keys in another order": lambda s, m: s.table.update(x=s.table.pop("x")),
    "a key of the user's": lambda s, m: s.table.update({Text("x"): s.table.pop("x")}),
    "a hook": lambda s, m: s.hooks.update(hook=1), "a plain dict": lambda s, m: setattr(s, "hooks", {}),
    "a longer list": lambda s, m: s.row.append(1), "a shorter list": lambda s, m: s.row.pop(),
    "another item": lambda s, m: s.row.__setitem__(0, 5), "another list": lambda s, m: setattr(s, "other", [2, (3,)]),
    "a list of the user's": lambda s, m: setattr(s, "row", type("Row", (list,), {})(s.row)),
    "missing": lambda s, m: delattr(s, "word"), "no table": lambda s, m: setattr(s, "table", None),
    "an attribute in the way": lambda s, m: setattr(s, "shared", "own"),
    "a longer array": lambda s, m: setattr(s, "array", np.zeros(4, np.float32)),
    "another dtype": lambda s, m: setattr(s, "array", np.zeros(3)), "no array": lambda s, m: setattr(s, "array", [0, 0, 0]),
    "an array elsewhere": lambda s, m: setattr(s, "array", np.zeros(3, np.float32)),
    "shared memory": lambda s, m: setattr(s, "limits", s.array[:2]), "read-only": lambda s, m: s.array.setflags(write=False),
    "Fortran order": lambda s, m: setattr(s, "limits", np.asfortranarray(s.limits)),
    "a parameter": lambda s, m: setattr(m, "W", m.b), "needs none": lambda s, m: setattr(m.W, "_requires_grad", False),
    "a gradient": lambda s, m: setattr(m.W, "grad", np.ones_like(m.W.array)),
    "a rule": lambda s, m: chainer.optimizers.SGD().setup(m),
    "a method of its own": lambda s, m: m.__dict__.update(forward=lambda x: F.linear(x, m.W)),
    "an array of a parameter": lambda s, m: setattr(m.W, "array", m.W.array.astype("d")),
    "a parameter without array": lambda s, m: m.W._data.__setitem__(0, None),
    "a class": lambda s, m: setattr(s, "__class__", type("Other", (State,), {})),
    "a hidden attribute": lambda s, m: setattr(s, "__class__", type("Hiding", (State,), {"number": property(lambda s: 9)})),
}


def made(kind):
    np.random.seed(0)
    return kind(), L.Linear(3, 2)


@pytest.fixture
def native():
    hotpath.start()
    yield
    hotpath.stop()


@pytest.fixture(scope="module", params=[State, WithDefaults], ids=lambda kind: kind.__name__)
def program(request):
    """A program for these objects, whose table native code walks, and the table."""
    hotpath.start()
    compiled = to_static(function, backend="numpy", strict=True)
    state, layer = made(request.param)
    compiled(np.ones((2, 3), np.float32), state, layer, times=2)
    found = compiled.dispatcher.programs[0].call.__globals__
    table, = [value for value in found.values() if type(value) is guard_tests.GuardTable]
    hotpath.stop()
    return request.param, table


@pytest.mark.parametrize("change", CHANGES)
def test_the_table_says_what_python_says(program, change, native):
    kind, table = program
    state, layer = made(kind)
    args, kwargs = (np.ones((2, 3), np.float32), state, layer), {"times": 2}
    assert guard_tests.check(table, args, kwargs) is not guards.MISS
    CHANGES[change](state, layer)
    for given in (args, (np.ones((4, 3), np.float32), state, layer), (args[0], layer, state)):
        found, expected = guard_tests.check(table, given, kwargs), table.python(given, kwargs)
        assert (found is guards.MISS) == (expected is guards.MISS)
        assert found is guards.MISS or all(a is b or a == b for a, b in zip(found, expected)) and len(found) == len(expected)


def test_values_are_those_of_this_call(program, native):
    """Dicts that have not changed are not asked again: by turns, two objects, one that fails late, and other dicts."""
    kind, table = program
    x, made_ones = np.ones((2, 3), np.float32), [made(kind) for _ in range(3)]
    made_ones[1][0].row, made_ones[1][0].table = list(made_ones[1][0].row), {"x": 1.5, "y": None}
    made_ones[1][0].other = made_ones[1][0].row
    made_ones[2][1].W._requires_grad = False
    for turn in [0, 0, 2, 0, 1, 2, 1, 1, 0, 2, 2, 0]:
        state, layer = made_ones[turn]
        args, kwargs = (x, state, layer), {"times": 2}
        found, expected = guard_tests.check(table, args, kwargs), table.python(args, kwargs)
        assert (found is guards.MISS) == (turn == 2) and (turn == 2 or all(a is b for a, b in zip(found, expected)))
        state.array = np.zeros(3, np.float32)
        if turn == 1:
            state.__dict__ = dict(state.__dict__)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("change", ["nothing", "number", "words", "another key", "another list", "shared memory", "needs none"])
def test_calls_are_right_behind_changes(change, backend, native):
    def called(function):
        state, layer = made(State)
        x = np.ones((2, 3), np.float32)
        found = [function(x, state, layer), function(x, state, layer)]
        CHANGES[change](state, layer)
        found += [function(x, state, layer), function(x, state, layer)]
        return [*[float(y.array) for y in found], *state.array.tolist()]
    compiled = to_static(function, backend=backend)
    assert called(compiled) == pytest.approx(called(function)) if backend == "c" else called(compiled) == called(function)


def test_small_programs_have_none(native):
    compiled = to_static(lambda x: x + 1)
    compiled(np.ones(3, np.float32))
    assert "check(" not in compiled.program(np.ones(3, np.float32)).entry


def test_values_are_held(native):
    """References to what the table gives are as many afterwards as before."""

    compiled, (state, layer) = to_static(function, backend="numpy"), made(State)
    x = np.ones((2, 3), np.float32)
    compiled(x, state, layer)
    watched = [state.array, layer.W, layer.W.array, state.table, state.row, state.words, x]
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(20):
        compiled(x, state, layer)
    assert [sys.getrefcount(item) for item in watched] == before
