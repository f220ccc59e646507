"""Types of elements on a GPU: those of C, and float16, which memory holds as halves and kernels compute with in float32.

The result of each operation is rounded to float16, as CuPy's kernels do it; sums and products over elements are rounded once.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Mapping, Optional, Sequence

import numpy as np

from ....ir.c_forms import c_constant, c_expression, c_type
from ....ir.graph import Node, Value
from ....ir.types import Tensor, Type

_HALF, _SINGLE = np.dtype(np.float16), np.dtype(np.float32)


def computed(dtype: Any) -> np.dtype[Any]:
    """The dtype in which elements of a dtype are computed: float32 for float16, else the same."""
    return _SINGLE if dtype == _HALF else np.dtype(dtype)


def memory_type(dtype: Any) -> Optional[str]:
    """The C type of elements in memory; None where kernels have none."""
    return "dy_half" if dtype == _HALF else c_type(dtype)


def register_type(dtype: Any) -> str:
    """The C type of elements in registers; "" where kernels have none."""
    return c_type(computed(dtype)) or ""


def constant(number: Any, dtype: Any) -> str:
    """A number as a constant for registers, rounded to the dtype.  Raises ValueError as `c_constant`."""
    return c_constant(_rounded(number) if dtype == _HALF else number, computed(dtype))


def loaded(text: str, dtype: Any) -> str:
    """An element in memory as a number in a register."""
    return f"(float){text}" if dtype == _HALF else text


def expression(node: Node, operands: Sequence[str]) -> Optional[str]:
    """One element of an elementwise node, which CUDA has in common with C; None where there is no form."""
    result = node.outputs[0].type
    is_half = isinstance(result, Tensor) and result.dtype == _HALF
    attrs: Mapping[str, Any] = _rounded_floats(node.attrs) if is_half else node.attrs
    text = c_expression(node.op, operands, [_computed_type(v) for v in node.inputs], _computed_type(node.outputs[0]), attrs)
    return f"dy_rounded({text})" if is_half and text is not None else text


def _computed_type(value: Value) -> Type:
    type = value.type
    return replace(type, dtype=_SINGLE) if isinstance(type, Tensor) and type.dtype == _HALF else type


def _rounded_floats(attrs: Mapping[str, Any]) -> Dict[str, Any]:
    """Attributes with numbers as they are beside arrays of float16."""
    return {name: _rounded(value) if isinstance(value, float) else value for name, value in attrs.items()}


def _rounded(number: Any) -> float:
    with np.errstate(all="ignore"):
        return float(np.float16(number))
