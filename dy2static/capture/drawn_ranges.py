"""Draws of the module `random` from ``range(n)`` where ``n`` is a size that differs from call to call."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Tuple

import numpy as np

from ..ir.dims import Dim
from ..ir.size_bounds import not_below
from ..ir.types import Tensor, python_scalar
from ..runtime.drawn_ranges import drawn_number, drawn_numbers
from ..symbolic.list_items import made_of
from ..symbolic.lists import StagedList
from ..symbolic.sequences import Range
from ..symbolic.values import SymbolicScalar
from .drawn_sizes import count_of

if TYPE_CHECKING:
    from .protocols import Capture

#: Of draws of several numbers: how many.
_COUNTS: Dict[str, Callable[..., Any]] = {"sample": lambda items, k: k, "choices": lambda items, *, k=1: k}


def drawn_of_range(capture: Capture, name: str, function: Callable, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
    """What ``random`` draws from a range of which only the run knows how long it is; NotImplemented for other draws."""
    items = args[0] if args else None
    if type(items) is not Range or items.step != 1:
        return NotImplemented
    ends = [capture.expressions.size_of(end) for end in (items.start, items.stop)]
    if None in ends:
        return NotImplemented
    called, numbers = dict(name=f"random.{name}"), ends[1] - ends[0]
    if name == "choice":
        if len(args) != 1 or kwargs:
            return NotImplemented
        if not not_below(numbers, 1):
            capture.effects.store_writes()              # it raises where there is none
        drawn = capture.host.call(drawn_number, (function, items.start, items.stop), {}, (python_scalar("py_int"),), **called)
        capture.index_ranges.drawn(drawn.value, *ends)
        return drawn
    try:
        number = _COUNTS[name](*args, **kwargs)
    except (KeyError, TypeError):                       # weights, or arguments that it does not have
        return NotImplemented
    number = number.fix() if type(number) is SymbolicScalar and number.text is not None else number
    count = count_of(capture, number)
    if count is None:
        return NotImplemented
    if not (not_below(count, 0) and not_below(numbers, count if name == "sample" else 1)):
        capture.effects.store_writes()
    given = args[1:], {key: number if key == "k" else item for key, item in kwargs.items()}
    array = capture.host.call(drawn_numbers, (function, items.start, items.stop, *given[0]), given[1],
                              (Tensor((count,), np.dtype(np.int64)),), **called)
    capture.array_writes.filled(array)
    capture.index_ranges.drawn(array.now(), *ends)
    if not isinstance(count, Dim):
        return StagedList(capture, [array[i].item() for i in range(count)])
    return StagedList(capture, [made_of(capture, lambda dtype: array if dtype is None else array.astype(dtype),
                                        python_scalar("py_int"))])
