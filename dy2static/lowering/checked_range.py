"""Numbers that only the run knows, and must be of a certain size: NumPy chooses dtypes by that."""
from __future__ import annotations

from typing import Tuple

from ..ir.op import declare, sample
from ..ops.onnx_forms import arithmetic, movement
from ..runtime.checked_range import check_within

#: A number, or an array of no dimensions, as it is, which is from ``least`` to ``greatest``.
#: finite: no infinity or NaN.  place: in the user's code; empty in a loaded model: its call raises, as no capture can follow.
within = declare(
    "within", "x", {"least": 0, "greatest": 0, "finite": True, "place": ""}, kind="scalar", infer=lambda x, **_: x,
    onnx=arithmetic.first,
    numpy="check_within({x}, {least}, {greatest}, {finite}, {place})", calls=(check_within,),
    samples=(sample(3, least=-128, greatest=127), sample(2.5, least=-65000.0, greatest=65000.0, finite=False)),
)


def _check_zero(x: int, *, place: str) -> Tuple[()]:
    check_within(x, 0, 0, True, place)
    return ()


#: Check that a number is zero, in its place among the effects.
zero = declare(
    "zero", "x", {"place": ""}, kind="effect", effect=True, infer=lambda x, **_: (), numpy=_check_zero, onnx=movement.nothing_to_do,
)
