"""How arrays lie in memory, and which of them are one object: what eager says, whatever the arrays of a run do."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from dy2static.ir.types import Tensor
from dy2static.symbolic.example_layouts import laid_out_for
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


def _transposed_back(x):
    y = x.transpose(1, 0, 2).reshape(3, -1)
    y += 1
    return y * 2, x * 1


def _turned_back(x):
    y = x[::-1].reshape(-1)
    y.fill(3)
    return y * 2, x * 1


def _one_more_row(x):
    y = x[..., 1:].swapaxes(0, 1).reshape(3, -1, 1)
    y[0] = 7
    return y + 1, x * 1


def _of_sums(x):
    y = (x + x).transpose(2, 0, 1).reshape(-1)[1:]
    y[::2] = 5
    return y.sum(), x * 1


def _in_c_order(x):
    y = np.ascontiguousarray(x.transpose(1, 0, 2))
    y[0] = 7
    return y * 2, x * 1


def _lying(strides, first=0):
    """An array of 2 × 3 × 4 numbers that lies with these strides."""
    made = np.ndarray((2, 3, 4), "f", np.zeros(200, "f"), 4 * first, [4 * n for n in strides])
    made[...] = np.arange(24, dtype="f").reshape(2, 3, 4)
    return made


IN_MEMORY = [(12, 4, 1), (1, 2, 6), (4, 8, 1), (1, 8, 2), (3, 1, 6), (12, 1, 3), (-12, 4, 1, 12), (12, -4, 1, 8), (40, 12, 3), (5, 12, 1)]


@pytest.mark.parametrize("program", [_transposed_back, _turned_back, _one_more_row, _of_sums, _in_c_order])
def test_what_is_a_view_goes_by_how_arrays_lie(program):
    compiled = to_static(program)
    for strides in IN_MEMORY:
        given, other = _lying(strides[:3], *strides[3:]), _lying(strides[:3], *strides[3:])
        for found, expected in zip((*compiled(given), given), (*program(other), other)):
            np.testing.assert_array_equal(found, expected)
    assert compiled.stats()["programs"]


def test_copies_that_layouts_decide_are_compiled():
    compiled = to_static(_in_c_order, strict=True)
    for size in (2, 3, 4, 5):
        for found, expected in zip(compiled(array(size, 3, 4)), _in_c_order(array(size, 3, 4))):
            np.testing.assert_array_equal(found, expected)


VIEWS = [lambda x: x.transpose(1, 2, 0), lambda x: x[::-1, :, ::-1], lambda x: x[0].T]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("order", "CF")
def test_arrays_are_laid_out_for_views(view, order):
    made = laid_out_for(Tensor((2, 3, 4), np.dtype("f")), view, order)
    assert np.may_share_memory(view(made).reshape(-1, order=order), made)
    made[...] = np.arange(24).reshape(2, 3, 4)
    assert len(set(made.flat)) == 24                    # each in a place of its own


@pytest.mark.parametrize("view", [lambda x: x.reshape(2, 3, 2, 2).transpose(1, 0, 2, 3), lambda x: x[:, :, ::2].swapaxes(0, 1)])
def test_arrays_are_laid_out_in_one_order_only(view):
    made = laid_out_for(Tensor((2, 3, 4), np.dtype("f")), view, "C")
    assert np.may_share_memory(view(made).reshape(-1), made)
    assert laid_out_for(Tensor((2, 3, 4), np.dtype("f")), view, "F") is None


def test_no_array_has_two_elements_in_one_place():
    assert laid_out_for(Tensor((2, 3, 4), np.dtype("f")), lambda x: x[:, :, :3], "C") is None
