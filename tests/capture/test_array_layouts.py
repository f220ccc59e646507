"""How arrays lie in memory, and which of them are one object: what eager says, whatever the arrays of a run do."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from tests.against_eager import array, check, variable


def _read_only():
    made = array(2, 3)
    made.flags.writeable = False
    return made


LAYOUTS = [lambda: array(2, 3), lambda: np.asfortranarray(array(2, 3)), lambda: array(4, 6)[::2, ::2], lambda: array(4, 6)[::-2, ::-2],
           lambda: array(3, 2).T, _read_only, lambda: array(6).reshape(2, 3)]


def _flags(x):
    return [(f.c_contiguous, f.f_contiguous, f.owndata, f.writeable, f["ALIGNED"], f.num, f.forc, str(f), type(f).__name__)
            for f in (x.flags, x.T.flags, (x + 1).flags, x[:, 1:].flags, x[0, 0].flags, np.broadcast_to(x, (2, 2, 3)).flags)]


def _strides(x):
    return [x.strides, x.T.strides, x[::-1, 1:].strides, (x * 2).strides, x.sum(0).strides, np.dot(x, x.T).strides, x[None].strides,
            x.data.strides, x.data.readonly, x.data.c_contiguous, x[0, 0].strides]


def _bases(x):
    y = x + 1
    return y.base, y.T.base is y, y[1:][0:1].base is y, y[1:].base is x, x[::2].T.base is x.T.base, x.base is None, y.sum().base


def _by_flags(x):
    return x.ravel() * 2 if x.flags.c_contiguous else np.ascontiguousarray(x).ravel()


def _in_memory_order(x):
    return x.ravel("A"), x.flatten(order="A"), np.reshape(x, -1, "F"), np.reshape(x, (-1,), "A"), x.tobytes("A"), np.isfortran(x + 1)


def _same(x):
    given = [np.asarray(x), np.ascontiguousarray(x), x.astype("f", copy=False), np.atleast_2d(x), x.conj(), x.real, np.real(x)]
    new = [x.T, x.T.T, x[:], x.copy(), x + 0, np.asarray(x.data), x.astype("d"), x.astype("f"), x.ravel(), np.atleast_1d(x[0])]
    return [y is x for y in given + new], given[0] is given[2], new[0] is new[1]


@pytest.mark.parametrize("program", [_flags, _strides, _bases, _by_flags, _in_memory_order, _same])
def test_layouts(program):
    check(lambda compile: compile(program), [lambda make=make: (make(),) for make in LAYOUTS], rounds=1, compiled=True)


def test_order_in_native_code():
    """Native code makes its arrays in C order, whatever NumPy does."""
    check(lambda compile: compile(lambda x: ((x + 1).ravel("K"), (x * 2).flatten("A"), np.isfortran(x + 1))),
          [lambda: (np.asfortranarray(array(2, 3)),), lambda: (array(2, 3),)], rounds=1, compiled=True, backend="c")


def _of_variables(v, w, a):
    y = F.relu(v)
    made = chainer.Variable(a)
    return (v.array is w.array, v.array is a, w.array is not a, v.array is v.data, y.array is y.array, y.array is v.array,
            made.array is a, made.array is v.array, (y + 1).array is y.array)


def test_arrays_of_variables():
    def call(which):
        v, w = variable(2, 3), variable(2, 3)
        arrays = {"none": array(2, 3), "one": v.array, "other": w.array}
        if which == "both":
            w.array = v.array
        return v, w, arrays.get(which, v.array)
    calls = [lambda which=which: call(which) for which in ("none", "one", "other", "both", "none")]
    check(lambda compile: compile(_of_variables), calls, compiled=True)


def test_two_arguments():
    compiled, a = to_static(lambda a, b: (a is b, a is not b)), array(3)
    for b in (a, a.copy(), a, a[:]):
        assert compiled(a, b) == (a is b, a is not b)
    assert compiled.stats()["fallbacks"] == 0


@pytest.mark.parametrize("program", [lambda x: F.relu(x).array.strides, lambda x: np.lib.stride_tricks.as_strided(x + 1, (2, 2), (8, 4)),
                                     lambda x: F.identity(chainer.Variable(x)).array is x, lambda x: x.T[::2].ravel("K")])
def test_runs_eagerly(program):
    check(lambda compile: compile(program), [lambda: (array(2, 3),)], rounds=1, compiled=False)


def test_flags_are_not_changed():
    def run(x):
        y = x + 1
        y.flags.writeable = False
        return y
    check(lambda compile: compile(run), [lambda: (array(2, 3),)], rounds=1)


def test_blocks_of_one_number():
    """They are a view of what is unpooled, which may be written."""
    check(lambda compile: compile(lambda x: F.unpooling_2d(x, 1, cover_all=False)), [lambda: (variable(1, 2, 2, 3),)], rounds=1,
          compiled=True)
