"""The types of the arrays that enter a C function, which reads memory by them: a test in C, and an error."""
from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence, Set

import numpy as np

from ...errors import RunError
from ...ir.dims import evaluate
from ...ir.graph import Value
from ...ir.types import Extent, Tensor
from ...native.library import Declared
from ..run_sizes import in_c, name_of
from .scalars import enters_as_array


def declared(inputs: Sequence[Value]) -> Dict[int, Declared]:
    """The types of the inputs that are arrays, by their places; -1 for sizes whose numbers do not enter."""
    known = {value.type.symbol for value in inputs if isinstance(value.type, Extent)}
    return {place: Declared(value.dtype, [_text(size, known) for size in value.shape])
            for place, value in enumerate(inputs) if enters_as_array(value.type)}


def sizes(inputs: Sequence[Value]) -> Dict[int, str]:
    """The names in C of the sizes that the types of arrays among the inputs are made of, by the places of their numbers."""
    needed = {symbol for value in inputs if isinstance(value.type, Tensor) for size in value.shape
              if not isinstance(size, int) for symbol in size.symbols}
    return {place: name_of(value.type.symbol) for place, value in enumerate(inputs)
            if isinstance(value.type, Extent) and value.type.symbol in needed}


def _text(size: Any, known: Set[str]) -> str:
    return str(in_c(size)) if isinstance(size, int) or known.issuperset(size.symbols) else "-1"


def require(inputs: Sequence[Value], given: Sequence[Any]) -> None:
    """Raise `RunError` if an array is not of its type."""
    numbers = {value.type.symbol: number for value, number in zip(inputs, given) if isinstance(value.type, Extent)}
    for value, array in zip(inputs, given):
        if enters_as_array(value.type) and isinstance(array, (np.ndarray, np.generic)):
            lengths = [_length(size, numbers) for size in value.shape]
            if array.dtype != value.dtype or array.ndim != value.ndim or \
                    any(expected not in (None, found) for expected, found in zip(lengths, array.shape)):
                shown = ", ".join(["any" if length is None else str(length) for length in lengths])
                raise RunError(f"the program is made for an array of the shape ({shown}) and dtype {value.dtype} here, and not for "
                               f"{array.shape} and {array.dtype}", hint=_HINT)


def _length(size: Any, numbers: Mapping[str, int]) -> Optional[int]:
    return evaluate(size, numbers) if isinstance(size, int) or numbers.keys() >= set(size.symbols) else None


_HINT = ("Python code that runs between has replaced an array, or changed its shape or dtype; let it change a copy, or call the "
         "function again before `backward`")
