"""Special functions, which SciPy computes, a few of them Python's `math` where there is no SciPy."""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

from ..ir.building import constant
from ..ir.graph import Value
from ..ir.op import OpDef, declare, sample
from ..ir.shapes import same_shape, show
from ..ir.types import Tensor, Type
from .elementwise import exp, number_by, power_const
from .onnx_forms import functions
from .rules import need_dtype

#: What Chainer calls for each element where there is no SciPy.
WITHOUT_SCIPY: Dict[str, Callable[[float], float]] = {
    "erf": math.erf, "erfc": math.erfc, "ndtr": lambda x: 0.5 * math.erfc(-x / 2 ** 0.5)}


def special_function(function: str, *operands: Any, out: Optional[np.ndarray] = None) -> np.ndarray:
    """What SciPy's function of this name gives, in the dtype of the last operand; some are there without SciPy, too."""
    try:
        from scipy import special
    except ImportError:
        result = np.vectorize(WITHOUT_SCIPY[function])(*operands)
    else:
        result = getattr(special, function)(*operands)
    if out is None:
        return np.asarray(result).astype(operands[-1].dtype, copy=False)
    np.copyto(out, result, casting="unsafe")
    return out


def _infer(*xs: Tensor, function: str, order: Any) -> Tensor:
    x = xs[-1]
    need_dtype(x, "f", "the operand")
    if not all(same_shape(n.shape, x.shape) for n in xs):
        raise ValueError(f"shapes differ: {' '.join(show(n.shape) for n in xs)}")
    return x


_SQRT_PI = math.sqrt(math.pi)


def _squared(x: Value) -> Value:
    return power_const(x, exponent=2)


def _polygamma(n: Value, x: Value) -> Value:
    return special(n, x, function="polygamma")


#: ``(y, x) -> dy/dx`` of the functions of one array, as Chainer writes it.
_DERIVATIVES: Dict[str, Callable[[Value, Value], Value]] = {
    "erf": lambda y, x: exp(-_squared(x)) * (2 / _SQRT_PI),
    "erfc": lambda y, x: exp(-_squared(x)) * (-2 / _SQRT_PI),
    "erfcx": lambda y, x: (x * y - 1 / _SQRT_PI) * 2.0,
    "erfinv": lambda y, x: exp(_squared(y)) * (_SQRT_PI / 2),
    "erfcinv": lambda y, x: exp(_squared(y)) * (-_SQRT_PI / 2),
    "ndtr": lambda y, x: exp(_squared(x) * -0.5) * (2 * math.pi) ** -0.5,
    "log_ndtr": lambda y, x: number_by((2 / math.pi) ** 0.5, special(-x * (1 / math.sqrt(2)), function="erfcx")),
    "ndtri": lambda y, x: exp(_squared(y) * 0.5) * (2 * math.pi) ** 0.5,
    "gammaln": lambda y, x: special(x, function="digamma"),
    "digamma": lambda y, x: _polygamma(constant(np.array(1)), x),
}


def _vjp(g: Value, y: Value, *xs: Value, function: str, order: Any) -> Tuple[Optional[Value], ...]:
    if function == "polygamma":
        return None, _polygamma(xs[0] + 1, xs[1]) * g
    if function == "zeta":
        return (g * -order * special(xs[0], function="zeta", order=order + 1),)
    return (_DERIVATIVES[function](y, xs[0]) * g,)


def _holes(*_: Tensor, function: str, order: Any) -> Dict[str, str]:
    return {"order": "" if order is None else f"{order!r}, ", "name": function}


def _c(types: Sequence[Type], result: Type, attrs: Mapping[str, Any]) -> Optional[str]:
    return f"{attrs['function']}_{{s}}({{xs_0}})" if attrs["function"] in WITHOUT_SCIPY else None


#: A function of `scipy.special`: of one array, or, ``polygamma``, of an array of ints and one of floats.
#: order: the number that ``zeta`` takes first.
special: OpDef = declare(
    "special", "*xs", {"function": "erf", "order": None}, kind="elementwise", infer=_infer, vjp=_vjp,
    numpy="special_function({function}, {order}{xs}, out={out})", calls=(special_function,), holes=_holes,
    cupy='np.copyto({out}, cupyx.scipy.special.{name}({order}{xs}), casting="unsafe")',
    c=_c,
    onnx=functions.special,
    samples=(sample((4, 3)), sample(()), sample((0, 3)), sample((3,), function="zeta", order=2.5, low=1.0, high=2.0),
             sample(np.array([[0], [1], [2]]), (3, 1), function="polygamma", low=0.5, high=2.0),
             *(sample((3,), function=name) for name in ("erfc", "erfcx", "ndtr", "log_ndtr")),
             *(sample((3,), function=name, low=0.2, high=0.8) for name in ("erfinv", "erfcinv", "ndtri", "gammaln", "digamma"))),
)
