"""The namespace of the array API standard, in short: ``python -m tests.lazy.array_api`` has more of it."""
import os
import subprocess
import sys

import array_api
import numpy as np
import pytest

from dy2static import lazy

xp = lazy.numpy

@pytest.mark.skipif(np.__version__ < "2", reason="NumPy 1 does not follow the standard, and operands without axes differ")
@pytest.mark.parametrize("area", sorted({case[0] for case in array_api.CASES} - {"elementwise"}))
def test_values_and_types_are_those_of_the_reference(area):
    found = {case[1]: array_api.run(case, 1) for case in array_api.CASES if case[0] == area}
    assert {name: problem for name, problem in found.items() if problem and problem != "no reference"} == {}
    assert None in found.values()


@pytest.mark.parametrize("name, wanted", [
    ("acos", np.arccos), ("bitwise_invert", np.invert), ("ceil", np.ceil), ("sign", np.sign), ("exp", np.exp)])
def test_elementwise(name, wanted):
    x = np.array([-1, 0, 1])
    got = getattr(xp, name)(lazy.array(x if name in ("bitwise_invert", "ceil") else x * 0.5))
    assert not got.is_evaluated
    np.testing.assert_allclose(got, wanted(x if name in ("bitwise_invert", "ceil") else x * 0.5))
    assert got.dtype == (int if name in ("bitwise_invert", "ceil") else float)


def test_functions_build_expressions():
    x = xp.asarray([[1.0, 2.0], [3.0, 5.0]])
    y = xp.linalg.vector_norm(xp.sort(xp.cumulative_sum(x, axis=0, include_initial=True), descending=True), axis=-1)
    assert not y.is_evaluated and y.shape == (3,)
    np.testing.assert_allclose(y, np.sqrt([0, 5, 65]))


def test_every_name_is_there():
    assert all(hasattr(xp, name) for name in xp.__all__)
    for case in array_api.CASES:
        if case[0] not in ("array object", "constants"):
            assert hasattr({"linalg": xp.linalg, "fft": xp.fft}.get(case[0], xp), case[1])


def test_an_array_tells_its_namespace():
    x = xp.ones(3)
    assert x.__array_namespace__() is xp is x.__array_namespace__(api_version="2023.12") and x.device == "cpu"
    assert x.to_device("cpu") is x
    with pytest.raises(ValueError, match="2023.12"):
        x.__array_namespace__(api_version="1999.01")
    with pytest.raises(ValueError, match="no device"):
        x.to_device("tpu")


@pytest.mark.parametrize("call, error", [
    (lambda: xp.take(xp.ones((2, 2)), xp.asarray([0])), ValueError), (lambda: xp.cumulative_sum(xp.ones((2, 2))), ValueError),
    (lambda: xp.expand_dims(xp.ones(3), axis=3), IndexError), (lambda: xp.isdtype(xp.int8, "number"), ValueError),
    (lambda: xp.zeros(3, device="gpu"), ValueError), (lambda: xp.sin(1.0), TypeError), (lambda: xp.sin("a"), TypeError),
    (lambda: xp.asarray(xp.ones(2), dtype=xp.int8, copy=False), ValueError), (lambda: xp.std(xp.ones(3), ddof=1), TypeError),
    (lambda: xp.vecdot(xp.ones((2, 3)), xp.ones((2, 1))), ValueError), (lambda: xp.linalg.cross(xp.ones(2), xp.ones(2)), ValueError),
    (lambda: xp.linalg.qr(xp.ones((2, 2)), mode="r"), ValueError), (lambda: xp.meshgrid(xp.ones(2), indexing="yx"), ValueError),
    (lambda: xp.linalg.matrix_transpose(xp.ones(2)), ValueError), (lambda: xp.result_type(xp.ones(2), "no dtype"), TypeError)])
def test_wrong_arguments_are_told_at_once(call, error):
    with pytest.raises(error):
        call()


def test_errors_name_the_users_line():
    y = xp.add(xp.ones(3), xp.ones(2))                  # this one
    with pytest.raises(ValueError, match="broadcast") as caught:
        y.evaluate()
    assert caught.traceback[-1].path.name == "test_array_api.py"


def test_what_cannot_be_told_without_values_is_computed_at_once():
    x = xp.asarray([3, 1, 3])
    values, inverse = xp.unique_inverse(x)
    assert values.tolist() == [1, 3] and inverse.tolist() == [1, 0, 1]
    assert [each.tolist() for each in xp.nonzero(x > 1)] == [[0, 2]]
    assert xp.unique_values(xp.asarray([float("nan")] * 2)).shape == (2,)


def test_memory_goes_to_others_by_dlpack_and_buffers():
    x = xp.asarray([1.0, 2.0])
    given = np.from_dlpack(x)
    assert given.tolist() == [1, 2] == np.asarray(memoryview(np.asarray(x))).tolist()
    data = np.ones(3)
    y = xp.from_dlpack(data)
    data[:] = 7
    assert y.tolist() == [1, 1, 1]


LIBRARIES = """
import dy2static, numpy as np, sklearn
from dy2static import lazy
from scipy import stats
from sklearn.preprocessing import MinMaxScaler
x = np.random.RandomState(0).rand(20, 3)
score = stats.zscore(lazy.array(x))
assert type(score) is lazy.LazyArray and not score.is_evaluated
np.testing.assert_allclose(score, stats.zscore(x))
with sklearn.config_context(array_api_dispatch=True):
    scaled = MinMaxScaler().fit_transform(lazy.array(x))
assert type(scaled) is lazy.LazyArray
np.testing.assert_allclose(scaled, MinMaxScaler().fit_transform(x))
"""


def test_libraries_that_follow_the_standard_take_lazy_arrays():
    pytest.importorskip("sklearn", "1.6")
    done = subprocess.run([sys.executable, "-c", LIBRARIES], env={**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": str(array_api.ROOT)},
                          stderr=subprocess.PIPE, universal_newlines=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("a, b", [("float32", "float64"), ("int8", "int64"), ("uint8", "int16")])
def test_dtypes_alone_decide_where_one_array_has_no_axes(a, b):
    x, y = xp.ones((2,), dtype=a), xp.asarray(3, dtype=b)
    for result in (xp.add(x, y), xp.multiply(y, x)):
        assert result.dtype == np.promote_types(a, b)
    assert xp.less(xp.asarray(2, dtype="int8"), xp.ones((2,), dtype="int64")).dtype == bool
