"""Arrays that `np.array` makes of lists of the caller's, of which there are more or fewer numbers from call to call."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Tuple

import numpy as np

from ..heap.list_shadows import ShadowList
from ..runtime.list_arrays import DTYPES
from ..symbolic.list_functions import text_of
from ..symbolic.lists import as_staged

if TYPE_CHECKING:
    from .protocols import Capture


def array_given(capture: Capture, function: Any, args: Tuple, kwargs: Mapping[str, Any]) -> Tuple:
    """The positional operands of a call, with the array of a list in place of the list if NumPy makes one of it."""
    if function not in (np.array, np.asarray) or not args or type(args[0]) is not ShadowList or as_staged(args[0]) is not args[0]:
        return args
    named = {**dict(zip(("dtype",), args[1:])), **kwargs}
    if len(args) > 2 or not named.keys() <= {"dtype"}:
        return args
    text = text_of(named.get("dtype"))
    array = args[0].array_of_items(text) if text in DTYPES else None
    return args if array is None else (capture.numpy.call(np.array, (array,), {}), *args[1:])
