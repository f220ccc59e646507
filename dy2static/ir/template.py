"""Filling the holes of an op's NumPy template: from a node to lines of Python."""
from __future__ import annotations

import math
from typing import Any, Dict, Mapping, Sequence, Tuple, Union

import numpy as np

from .dims import Dim
from .op import OpDef
from .types import Scalar, Tensor, Type


def fills_out(op: OpDef) -> bool:
    """Whether the template writes into an array made before, and is not an expression."""
    return isinstance(op.numpy, str) and "{out}" in op.numpy


def numpy_source(op: OpDef, operands: Sequence[str], out: Union[str, Sequence[str]], types: Sequence[Type], result: Type,
                 attrs: Mapping[str, Any]) -> str:
    """The template of ``op`` with its holes filled: an expression, or statements where `fills_out` says so.

    operands, out: source text of the operands (names, or anything that needs no parentheses) and of the array, or the
    arrays, to fill.  types, result: the types of the operands and of the first output.
    """
    return filled(op.numpy, op, operands, out, types, result, attrs)                # type: ignore[arg-type]


def filled(template: str, op: OpDef, operands: Sequence[str], out: Union[str, Sequence[str]], types: Sequence[Type], result: Type,
           attrs: Mapping[str, Any]) -> str:
    """Another template of ``op`` with its holes filled, as `numpy_source`."""
    return template.format(**holes_of(op, operands, out, types, result, attrs))


def holes_of(op: OpDef, operands: Sequence[str], out: Union[str, Sequence[str]], types: Sequence[Type], result: Type,
             attrs: Mapping[str, Any]) -> Dict[str, str]:
    """The text for every hole of an op's template."""
    holes = {name: attr_source(value) for name, value in attrs.items()}
    outs = (out,) if isinstance(out, str) else tuple(out)
    holes["out"] = outs[0]
    holes.update((f"out_{i}", text) for i, text in enumerate(outs[1:], start=1))
    if isinstance(result, (Tensor, Scalar)):
        holes["T"] = attr_source(result.dtype)
    for i, name in enumerate(op.inputs):
        if name.startswith("*"):
            holes[name[1:]] = ", ".join(operands[i:])
            holes.update((f"{name[1:]}_{k}", text) for k, text in enumerate(operands[i:]))
        else:
            holes[name] = operands[i]
    if op.holes is not None:
        holes.update({name: text.format(**holes) for name, text in op.holes(*types, **attrs).items()})
    return holes


def attr_source(value: Any) -> str:
    """Python source, with NumPy as ``np``, that gives a value equal to this attribute."""
    if isinstance(value, np.dtype):
        return "np.bool_" if value.kind == "b" else f"np.{value.name}"
    if isinstance(value, np.ndarray):
        text = f"np.array({attr_source(value.tolist())}, {attr_source(value.dtype)})"
        return text if value.size else f"{text}.reshape({value.shape})"
    if isinstance(value, np.generic):
        return f"{attr_source(value.dtype)}({attr_source(value.item())})"
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"
    if isinstance(value, tuple):
        return f"({', '.join(map(attr_source, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(attr_source, value))}]"
    if isinstance(value, Dim):
        return f"({value})"
    if value is Ellipsis:
        return "..."
    return repr(value)


#: In an index, the place of a number that is an operand.  ``(AT, n)`` stands for ``n`` elements from such a number on.
AT = "at"


def is_window(entry: Any) -> bool:
    """Whether an entry of an index stands for so many elements from an operand on."""
    return isinstance(entry, tuple) and len(entry) == 2


def count_numbers(index: Tuple[Any, ...]) -> int:
    """How many operands stand in an index."""
    return sum(is_window(entry) or isinstance(entry, str) and entry == AT for entry in index)


def index_source(index: Tuple[Any, ...], start: str = "{}") -> str:
    """The text between the brackets of a basic index: ``0, 1:3, None``.  It always selects an array, never a scalar.

    index: ints, None for a new axis, ``(start, stop, step)`` for slices, None where left out, and `AT`, or ``(AT, n)``, for
    each of the operands ``numbers``, in their order.  start: the form of the operand of an ``(AT, n)``.
    """
    holes = (f"{{numbers_{k}}}" for k in range(len(index)))
    parts = [_window_source(start.format(next(holes)), part[1]) if is_window(part) else
             _slice_source(*part) if isinstance(part, tuple) else
             next(holes) if part == AT else attr_source(part) for part in index]
    if not any(isinstance(part, tuple) for part in index):
        parts.append("...")
    return ", ".join(parts)


def _window_source(start: str, count: int) -> str:
    return f"{start}:{start} + {count}"


def _slice_source(start: Any, stop: Any, step: Any) -> str:
    text = f"{'' if start is None else start}:{'' if stop is None else stop}"
    return text if step is None or step == 1 else f"{text}:{step}"
