"""The C forms of elementwise ops against NumPy: values, NaN, infinities, wrapping ints, and floating-point flags."""

import numpy as np
import pytest

from dy2static import ops  # noqa: F401  (fills OPS)
from dy2static.ir.c_forms import c_constant


@pytest.mark.parametrize("value, dtype, text", (
    (0.5, "float32", "0x1.0000000000000p-1f"), (0.1, "float32", "0x1.99999a0000000p-4f"), (-2, "float64", "(-0x1.0000000000000p+1)"),
    (-0.0, "float64", "(-0x0.0p+0)"), (np.inf, "float32", "INFINITY"), (-np.inf, "float64", "(-((double)INFINITY))"),
    (np.nan, "float32", "NAN"), (1e60, "float32", "INFINITY"), (True, "bool", "true"), (3, "uint8", "UINT8_C(3)"),
    (-3, "int64", "(-INT64_C(3))"), (-2 ** 63, "int64", "INT64_MIN"), (2 ** 64 - 1, "uint64", f"UINT64_C({2 ** 64 - 1})")))
def test_constants_are_exact(value, dtype, text):
    assert c_constant(value, dtype) == text


@pytest.mark.parametrize("value, dtype", ((0.5, "int32"), (-1, "uint8"), (2, "bool"), (128, "int8")))
def test_constants_that_a_dtype_cannot_hold(value, dtype):
    with pytest.raises(ValueError):
        c_constant(value, dtype)
