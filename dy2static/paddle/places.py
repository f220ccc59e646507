"""Where programs run: `CPUPlace`; and `CUDAPlace`, where they do not."""
from __future__ import annotations

from typing import Any

from ..compat import cuda
from ..errors import BackendError, SignatureError


class CPUPlace:
    """The processor."""

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, vars(self).values()))})"


class CUDAPlace(CPUPlace):
    """A GPU, by its number.  An `Executor` for it raises `BackendError`: programs run on the processor."""

    def __init__(self, id: int = 0):
        self.id = int(id)


def place_of(given: Any) -> CPUPlace:
    """The place that a place, ``"cpu"``, ``"gpu:0"`` or None stands for.  Raises `BackendError` for a GPU."""
    if given is None or given == "cpu":
        return CPUPlace()
    if isinstance(given, str) and given.partition(":")[0] == "gpu":
        number = given.partition(":")[2] or "0"
        given = CUDAPlace(int(number)) if number.isdigit() else given
    if isinstance(given, CUDAPlace):
        why = "and there is no GPU that CuPy can use" if not cuda.devices() else \
            "and functions on arrays of CuPy run eagerly"
        raise BackendError(f"nothing runs on {given!r}: programs run on the processor, {why}", hint="use CPUPlace()")
    if isinstance(given, CPUPlace):
        return given
    raise SignatureError(f'a place is CPUPlace(), CUDAPlace(number), "cpu" or "gpu:number", not {given!r}')
