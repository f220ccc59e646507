"""Whether the results of a call are of the types that a file says: native code relies on them."""
from __future__ import annotations

from typing import Any, Tuple

import numpy as np

from ..errors import LoadError
from ..ir.types import PYTHON_TYPES, List, Scalar, Tensor, Type


def check_result(value: Any, type_: Type, shape: Tuple[int, ...]) -> None:
    """Raise `LoadError` unless a value is of a type.  shape: of an array, or of the arrays in a list."""
    for item in value if isinstance(type_, List) else (value,):
        if not _is_of(item, type_.elem if isinstance(type_, List) else type_, shape):
            raise LoadError(f"a call of the loaded model gives {type(item).__name__} {np.shape(item)}, where its file says {type_}")


def _is_of(value: Any, type_: Type, shape: Tuple[int, ...]) -> bool:
    if isinstance(type_, Tensor):
        return isinstance(value, np.ndarray) and value.dtype == type_.dtype and value.shape == shape
    if isinstance(type_, Scalar):
        return type(value) is PYTHON_TYPES[type_.kind] if type_.kind in PYTHON_TYPES else \
            isinstance(value, np.generic) and value.dtype == type_.dtype
    return True
