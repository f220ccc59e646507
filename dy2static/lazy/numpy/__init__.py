"""The namespace of lazy arrays by the Python array API standard 2023.12: https://data-apis.org/array-api/2023.12/

``y.__array_namespace__()`` gives it.  Functions build expressions where the shape of the result does not depend on values; the
others say in their first line that they compute at once.
"""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..arrays import LazyArray
from . import creation, dtypes, elementwise, fft, linalg, manipulation, statistics  # noqa: F401
from .calls import on_cpu
from .dtypes import __array_namespace_info__  # noqa: F401
from .linalg import matmul, matrix_transpose, tensordot, vecdot  # noqa: F401

__array_api_version__ = "2023.12"

_PARTS = (creation, dtypes, elementwise, manipulation, statistics)
_NAMES = {name: getattr(part, name) for part in _PARTS for name in part.__all__}
globals().update(_NAMES)
if TYPE_CHECKING:
    def __getattr__(name: str) -> Any: ...              # for type checkers: the names above

__all__ = sorted([*_NAMES, "fft", "linalg", "matmul", "matrix_transpose", "tensordot", "vecdot"])


def _namespace(self: LazyArray, /, *, api_version: Any = None) -> Any:
    """The namespace of the array API standard.  Raises ValueError for a version that it does not follow."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12"):
        raise ValueError(f"lazy arrays follow version 2023.12 of the array API standard, not {api_version!r}")
    return sys.modules[__name__]


def _to_device(self: LazyArray, device: Any, /, *, stream: Any = None) -> LazyArray:
    """The array itself.  Raises ValueError for a device other than ``"cpu"``."""
    on_cpu(device)
    return self


LazyArray.__array_namespace__ = _namespace              # type: ignore[attr-defined]
LazyArray.to_device = _to_device                        # type: ignore[attr-defined]
LazyArray.device = property(lambda self: "cpu", doc="The device: always ``\"cpu\"``.")      # type: ignore[attr-defined]
