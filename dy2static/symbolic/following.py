"""How the sizes of what NumPy gives follow those of its operands: as a rule for all sizes, not for the few that are tried."""
from __future__ import annotations

import operator
from typing import Any, Callable, Sequence, Tuple

import numpy as np

from ..ir.dims import Dim, less, maximum
from ..ir.graph import Value
from ..ir.op import OPS
from ..ir.types import Tensor
from ..lowering.host import fill

#: Functions, methods and attributes whose results have sizes that are sums and products of those of the operands and of the
#: numbers given, for any sizes of two or more; or that contents decide.
_FOLLOWING = frozenset("""
    _class_counts _rows _write _write_checked abs accumulate add all allclose amax amin and_ angle any argmax argmin
    argsort argwhere array asanyarray asarray ascontiguousarray astype atleast_1d atleast_2d atleast_3d average bool
    broadcast_arrays broadcast_to ceil clip column_stack compress concatenate conj conjugate contains copy
    count_nonzero cross cumprod cumsum det dot dstack einsum empty empty_like eq expand_dims extract eye fix
    flatnonzero flatten flip fliplr flipud float floor floordiv full full_like ge gt hstack identity imag indices
    inner int inv invert isclose iscomplex isfinite isin isinf isnan isneginf isposinf isreal item kron le linspace
    logical_and logical_not logical_or logical_xor lshift lt matmul max maximum mean median meshgrid min minimum mod
    moveaxis mul nan_to_num nanmax nanmean nanmin nanstd nansum nanvar ne neg nonzero norm not_ ones ones_like or_
    outer pad percentile pinv pos positive pow prod ptp quantile ravel real reduce repeat reshape roll rollaxis rot90
    round round_ rshift searchsorted sinc solve sort squeeze stack std sub sum swapaxes T take take_along_axis
    tensordot tile transpose tril triu truediv unique var vdot vstack where xor zeros zeros_like
    """.split())


def result_of(function: Callable, template: Tuple[Any, Any], types: Sequence[Any]) -> Any:
    """The type of a result that is known without a trial: of parts of an array, of what is written, of a range; None for others.

    types: of the operands; the `Dim` for one that is a size.
    """
    args, kwargs = template
    if getattr(function, "__name__", "") in ("_write", "_write_checked"):
        return types[args[0].index]
    if function is not operator.getitem and function is not np.arange:
        return None
    filled = fill(args, [t if isinstance(t, Dim) else Value(t) for t in types])
    if function is operator.getitem and isinstance(filled[0], Value) and _is_basic(filled[1]):
        index = filled[1] if isinstance(filled[1], tuple) else (filled[1],)
        op, of = OPS["getitem"], filled[0].type
        return op.infer(of, **op.canonical(of, index=index))
    if function is np.arange and set(kwargs) <= {"dtype"} and all(type(n) is int or isinstance(n, Dim) for n in filled):
        start, stop, step = filled if len(filled) == 3 else (*filled, 1) if len(filled) == 2 else (0, filled[0], 1)
        if type(step) is int and step > 0:
            return Tensor((maximum(0, (stop - start + step - 1) // step),), np.arange(1, **kwargs).dtype)
    return None


def follows(function: Callable, name: str, template: Tuple[Any, Any], sizes: Sequence[Dim]) -> bool:
    """Whether the result of a call has sizes that follow those of its operands, so that trials show how.

    sizes: the operands that are sizes.
    """
    if any(less(n, 0) is not False for n in sizes):
        return False
    if function is operator.getitem:
        entries = template[0][1] if isinstance(template[0][1], tuple) else (template[0][1],)
        return not any(type(entry) is slice and entry != slice(None) for entry in entries)
    if name == "diff":
        return len(template[0]) == 1 and "n" not in template[1]
    return isinstance(function, np.ufunc) or name in _FOLLOWING


def _is_basic(index: Any) -> bool:
    """Whether an index selects a view, by ints and sizes that are not negative; steps are ints."""
    for entry in index if isinstance(index, tuple) else (index,):
        ends = (entry.start, entry.stop) if type(entry) is slice else (entry,)
        if type(entry) is slice and type(entry.step) not in (int, type(None)) or \
                not all(end is None or end is Ellipsis or type(end) is int or
                        isinstance(end, Dim) and less(end, 0) is False for end in ends):
            return False
    return True
