"""Values, gradients and gradients of gradients where squares overflow or underflow, at zeros, infinities and NaN: as in eager mode.

The steps of Chainer's own formulas decide which of them are zero, infinite or NaN there.
"""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static

EXTREME = {"f": [0.0, 1e-45, 1e-30, 0.5, 1.0, 2.0, 90.0, 2e19, 3e38, np.inf],
           "d": [0.0, 5e-324, 1e-200, 0.5, 1.0, 2.0, 720.0, 2e154, 1e308, np.inf]}
#: Of one array, or of several, each of which has all extreme values beside all of the others.
UNARY = {
    "1 / x": lambda x: 1 / x, "3 / x": lambda x: 3 / x, "x ** 2": lambda x: x ** 2, "x ** 3": lambda x: x ** 3,
    "x ** -2.5": lambda x: x ** -2.5,
    "2 ** x": lambda x: 2 ** x, "leaky_relu zero": lambda x: F.leaky_relu(x, 0.0), "elu": F.elu, "softplus": lambda x: F.softplus(x, 2.0),
    "tanh": F.tanh, "sigmoid": F.sigmoid, "sin": F.sin, "cos": F.cos, "arcsin": F.arcsin, "arccos": F.arccos, "arctan": F.arctan,
    "arctanh": F.arctanh, "erf": F.erf, "erfc": F.erfc, "ndtr": F.ndtr, "log_ndtr": F.log_ndtr, "rsqrt": F.rsqrt,
    "softmax": lambda x: F.softmax(x[:, None], 0), "log_softmax": lambda x: F.log_softmax(F.stack([x, -x], 1)), "norm": lambda x: F.batch_l2_norm_squared(x[:, None]),
}
SEVERAL = {
    "x / y": lambda x, y: x / y, "minimum": F.minimum, "squared_error": F.squared_error,
    "swish": lambda x, y: F.swish(x[None], y), "prelu": lambda x, y: F.prelu(x[None], y),
    "mean_squared_error": lambda x, y: F.stack([F.mean_squared_error(x[i], y[i]) for i in range(0, 400, 19)]),
    "gaussian": lambda x, y: F.gaussian(x, y, eps=np.full(400, 2.0, x.dtype)),
    "triplet": lambda x, y: F.triplet(x[:, None], y[:, None], -y[:, None], reduce="no"),
}


def observed(function, xs):
    """Results, gradients and gradients of gradients, with warnings."""
    xs = [chainer.Variable(x.copy()) for x in xs]
    with np.errstate(all="ignore"):
        y = function(*xs)
        gy = chainer.Variable(np.linspace(0.5, 2, y.size).astype(y.dtype).reshape(y.shape))
        gxs = chainer.grad([y], xs, [gy], enable_double_backprop=True)
        ends = [F.identity(gx) for gx in gxs]
        seconds = chainer.grad(ends, [*xs, gy], [chainer.Variable(np.full_like(gx.array, 0.75)) for gx in gxs])
    return [y.array, *(gx.array for gx in gxs), *(None if gx is None else gx.array for gx in seconds)]


def compared(function, xs, backend):
    for actual, expected in zip(observed(to_static(function, backend=backend), xs), observed(function, xs)):
        assert (actual is None) == (expected is None)
        if expected is not None:
            tiny = 4 * np.finfo(expected.dtype).smallest_subnormal
            np.testing.assert_allclose(actual, expected, rtol=1e-5 if expected.dtype == "f" else 1e-11, atol=tiny)


def signed(dtype):
    return np.array([*EXTREME[dtype], *(-x for x in EXTREME[dtype])], dtype)


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("name", UNARY)
def test_of_one_array(name, dtype):
    compared(UNARY[name], [np.append(signed(dtype), np.asarray(np.nan, dtype))], "numpy")


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("name", SEVERAL)
def test_of_several_arrays(name, dtype):
    compared(SEVERAL[name], [part.ravel() for part in np.meshgrid(signed(dtype), signed(dtype))], "numpy")


def test_in_native_code():
    names = ("1 / x", "x ** 3", "tanh", "arctan")
    compared(lambda x: F.stack([UNARY[name](x) for name in names]), [np.append(signed("f"), np.float32(np.nan))], "c")
