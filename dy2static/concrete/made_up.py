"""A program for what an `InputSpec` describes, before there is a call: for arguments that are made up."""
from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, Iterator, Optional, Sequence, Tuple

import numpy as np

from ..input_spec import InputSpec
from ..runtime.program import Program

#: Which free axes are given one size, by the numbers of array and axis: none, the first ones, those of one number.
_ALIKE: Tuple[Callable[[int, int], Any], ...] = (
    lambda array, axis: (array, axis), lambda array, axis: 0 if axis == 0 else (array, axis), lambda array, axis: axis)


def program_for(specs: Sequence[Any], compiled: Callable[..., Program]) -> Program:
    """What ``compiled`` makes for arrays of zeros as specified: with free sizes, if that can be.

    Raises what it raises if it takes none of them.
    """
    found: Optional[Program] = None
    failed: Optional[Exception] = None
    for alike in _ALIKE:
        try:
            found = compiled(*_arguments(specs, alike))
        except Exception as error:                      # of any kind: the user's code does not take sizes that differ
            failed = failed or error
            continue
        if found.has_free_sizes or not _is_open(specs):
            return found
    if found is None:
        raise failed                                    # type: ignore[misc]
    return found


def _arguments(specs: Sequence[Any], alike: Callable[[int, int], Any]) -> Tuple[Any, ...]:
    arrays: Iterator[int] = itertools.count()
    sizes: Dict[Any, int] = {}

    def made(spec: Any) -> Any:
        if isinstance(spec, InputSpec):
            array = next(arrays)
            return np.zeros([sizes.setdefault(alike(array, axis), len(sizes) + 2) if n is None else n
                             for axis, n in enumerate(spec.shape)], spec.dtype)
        if isinstance(spec, (tuple, list)):
            return type(spec)([made(part) for part in spec])
        return {key: made(part) for key, part in spec.items()} if isinstance(spec, dict) else spec
    return tuple([made(spec) for spec in specs])


def _is_open(spec: Any) -> bool:
    if isinstance(spec, InputSpec):
        return None in spec.shape
    parts = spec.values() if isinstance(spec, dict) else spec if isinstance(spec, (tuple, list)) else ()
    return any(map(_is_open, parts))
