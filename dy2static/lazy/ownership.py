"""Whose memory a lazy array reads: a foreign array is taken as it is where no other code can change it, and copied otherwise."""
from __future__ import annotations

import sys
import weakref
from typing import Any, Optional

import numpy as np


def _seen(x: Any) -> int:
    """How many references a function sees to its only argument."""
    return sys.getrefcount(x)


#: What `_seen` counts for an array that only the call itself holds; 0 where Python lends references.
#: No more than a plain call has without a debugger.
ALONE = min(_seen(np.empty(1)), 2 if sys.version_info >= (3, 11) else 3) if sys.version_info < (3, 14) else 0


def is_frozen(x: np.ndarray) -> bool:
    """Whether the memory of an array is read-only: so are the array and all arrays that it is a view of."""
    owner: Any = x
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return owner is None or isinstance(owner, bytes)


def is_held_once(x: np.ndarray, count: int) -> bool:
    """Whether an array with so many references, as `_seen` counts them, is the call's own.

    Memory that it only looks at may have other readers.
    """
    return count <= ALONE and x.base is None and x.flags.owndata and not weakref.getweakrefcount(x)


def owned(x: np.ndarray, copy: Optional[bool], count: int) -> np.ndarray:
    """An array with the contents of ``x`` that is never changed.

    copy: True copies in any case, False never: then the caller promises not to change it.  count: references to ``x``, as `_seen`
    counts them.
    """
    if copy is False or copy is None and (is_held_once(x, count) or is_frozen(x)):
        return x
    return x.copy(order="K")
