"""Exceptions that code of the user's handles say in a compiled call what they say eagerly: they name the user's types."""
import collections
import threading
import types

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static


class State:
    def __init__(self):
        self.list, self.dict, self.set, self.tuple = [1.0, 2.0], {"a": 1}, {1, 2}, (1, 2)
        self.queue, self.names, self.default = collections.deque([1.0]), types.SimpleNamespace(), collections.defaultdict(list)
        self.lock = threading.Lock()


state = State()


def deletes(x, m, s):
    del state.lock[0]


def unpacks(x, m, s):
    first, second = x.array.sum()


#: What raises, of a Variable, a number and a text that change from call to call.
CASES = {
    "~ of a Variable": lambda x, m, s: ~x,
    "% of a Variable": lambda x, m, s: x % [],
    "a Variable and a list": lambda x, m, s: x + state.list,
    "a Variable and a list made here": lambda x, m, s: x * [m],
    "a Variable is called": lambda x, m, s: x(),
    "a Variable as a key": lambda x, m, s: {x: 1},
    "a Variable as an index": lambda x, m, s: [1][x],
    "a Variable as a range": lambda x, m, s: range(x),
    "a Variable as an int": lambda x, m, s: int(x),
    "an attribute of a Variable": lambda x, m, s: F.tanh(x).missing,
    "an item is put into a Variable": lambda x, m, s: x.__setitem__(0, 1),
    "an array is called": lambda x, m, s: x.array(),
    "an array as a key": lambda x, m, s: {x.array: 1},
    "the next of an array": lambda x, m, s: next(x.array),
    "an item of an array is deleted": lambda x, m, s: x.array.__delitem__(0),
    "the length of a number of NumPy's": lambda x, m, s: len(x.array.sum()),
    "a number of NumPy's as a sequence": lambda x, m, s: list(x.array.sum()),
    "an attribute of a number of NumPy's": lambda x, m, s: x.array.sum().missing,
    "an attribute of a number of NumPy's is set": lambda x, m, s: setattr(x.array.sum(), "missing", 1),
    "an attribute of a number of NumPy's is deleted": lambda x, m, s: delattr(x.array.sum(), "missing"),
    "a number of NumPy's is unpacked": unpacks,
    "a number of NumPy's as a mapping": lambda x, m, s: {**x.array.sum()},
    "the next of a number of NumPy's": lambda x, m, s: next(x.array.sum()),
    "what a method of a number of NumPy's gives is called": lambda x, m, s: x.array.sum()(),
    "a number of NumPy's as a key": lambda x, m, s: {x.array.sum() * 0: "found"}[0],
    "the shape of an array is assigned": lambda x, m, s: setattr(x.array, "shape", (1, 3)),
    "~ of a number": lambda x, m, s: ~m,
    "an item of a number": lambda x, m, s: m[0],
    "the length of a number": lambda x, m, s: len(m),
    "a number and a text": lambda x, m, s: m @ s,
    "a float as an index of a list": lambda x, m, s: [1, 2][m],
    "a float as an index of a tuple": lambda x, m, s: state.tuple[m],
    "a float as an index of a text": lambda x, m, s: "abc"[m],
    "an attribute of the text of an array": lambda x, m, s: (str(x.array.sum()).missing, 1)[1],
    "- of a text": lambda x, m, s: -s,
    "a text is divided": lambda x, m, s: s / 2,
    "a text as an index": lambda x, m, s: state.list[s],
    "a text as an index of a deque": lambda x, m, s: state.queue[s],
    "a list is called": lambda x, m, s: state.list(),
    "a dict is called": lambda x, m, s: state.dict(),
    "the sum of sets": lambda x, m, s: state.set + state.set,
    "the sum of a default dict": lambda x, m, s: state.default + 1,
    "a namespace is called": lambda x, m, s: state.names(),
    "the length of a namespace": lambda x, m, s: len(state.names),
    "an attribute of a namespace": lambda x, m, s: state.names.missing,
    "an object of the user's is called": lambda x, m, s: state(),
    "the sum of a class": lambda x, m, s: State + 1,
    "an attribute that an object of a library lacks": lambda x, m, s: (state.lock.missing, 1)[1],
    "an item of an object of a library is deleted": deletes,
    "a module": lambda x, m, s: -np,
    "a size that NumPy takes for any": lambda x, m, s: F.reshape(x, (int(m) - 9, 1)),
}


def told(call, *args):
    try:
        found = call(*args)
    except Exception as error:
        return type(error).__name__, str(error), len(error.args), error.__context__, error.__cause__, error.__suppress_context__
    return type(found).__name__


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
@pytest.mark.parametrize("name", CASES)
def test_messages(name):
    def f(x, m, s):
        return F.tanh(x) * 2, told(CASES[name], x, m, s)

    compiled = to_static(f, backend="numpy")
    for m, s in ((1.5, "a"), (2.5, "bc"), (0.5, "d")):
        eager, result = (call(chainer.Variable(np.arange(3, dtype="f")), m, s)[1] for call in (f, compiled))
        assert result == eager


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
@pytest.mark.parametrize("name", ["an attribute of a number of NumPy's is set", "the next of a number of NumPy's", "a number and a text"])
def test_messages_that_a_context_manager_gets(name):
    class Kept:
        def __enter__(self):
            return self

        def __exit__(self, *args):
            said.append(str(args[1]))
            return True

    def f(x, m, s):
        with Kept():
            CASES[name](x, m, s)
        return F.tanh(x) * 2

    found = []
    for call in (f, to_static(f, backend="numpy")):
        said = []
        for m, s in ((1.5, "a"), (2.5, "bc")):
            call(chainer.Variable(np.arange(3, dtype="f")), m, s)
        found.append(said)
    assert found[0] == found[1]


def test_an_array_keeps_its_shape_where_an_assignment_is_tried():
    def f(x):
        try:
            x.array.shape = (1, 3)
        except AttributeError:
            return F.tanh(x) * 2
        return F.tanh(x) * 3

    for call in (f, to_static(f), to_static(f)):
        x = chainer.Variable(np.arange(3, dtype="f"))
        np.testing.assert_array_equal(call(x).array, np.tanh(x.array) * np.float32(3))
        assert x.array.shape == (1, 3)
