"""Terms of entropies, whose gradients Chainer decides by itself."""
from __future__ import annotations

import warnings
from typing import Any, Optional, Tuple

import numpy as np

from ..ir.graph import Value
from ..ir.op import declare, sample
from ..ir.types import Tensor
from .onnx_forms import functions
from .rules import need_dtype, one_dtype, one_shape, same_as_input


def nonzero_or_warn(x: Any, out: np.ndarray) -> None:
    """``x != 0`` as a number; warns of zeros as Chainer's gradient does."""
    np.not_equal(x, 0, out=out, casting="unsafe")
    if not out.all():
        warnings.warn("cannot calculate gradient for zero input.", RuntimeWarning, stacklevel=2)


#: ``x != 0`` in the dtype of ``x``; a warning where that is not so, for gradients that are not there.
nonzero_factor = declare(
    "nonzero_factor", "x", kind="elementwise", infer=same_as_input, inplace_ok=True,
    numpy="nonzero_or_warn({x}, {out})", calls=(nonzero_or_warn,),
    onnx=functions.nonzero_factor,
    samples=(sample((2, 3), low=1, high=2), sample((), low=1, high=2), sample((0, 3))),
)


def _infer(x: Tensor, log_x: Tensor) -> Tensor:
    need_dtype(x, "f", "the operand")
    one_shape(x, log_x)
    one_dtype(x, log_x)
    return x


def _vjp(g: Value, y: Value, x: Value, log_x: Value) -> Tuple[Value, Optional[Value]]:
    return g * ((log_x + 1.0) * nonzero_factor(x)), None


_SHARES = np.array([[0.5, 0, 0.25], [1, 0.125, 2]], np.float32)

#: ``x * log_x``, 0 where ``x`` is: the gradient is that of ``x * log(x)``, 0 there, too, with a warning.
x_times_log = declare(
    "x_times_log", "x log_x", kind="elementwise", infer=_infer, vjp=_vjp,
    numpy="np.multiply({x}, {log_x}, out={out})\nnp.copyto({out}, 0, where={x} == 0)",
    c="{x} == 0 ? 0 : {x} * {log_x}",
    onnx=functions.x_times_log,
    samples=(sample(_SHARES, np.log(_SHARES + (_SHARES == 0))), sample(np.zeros((), "f"), np.ones((), "f"))),
)
