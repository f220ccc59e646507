"""What the names of sizes say of them: from which number on, and up to which.

Those that begin with "length" are never zero, others may be.  Those of the caller's arrays, which begin with "length_n", are two
or more; ``length_n0_from8``: eight or more; ``length_n0_upto64``: at most 64.
"""
from __future__ import annotations

import functools
from typing import Optional

#: How the names of symbols begin that stand for sizes of the caller's arrays.
FREE = "length_n"
#: How the names of symbols begin that stand for so many or more.
_AT_LEAST = ((FREE, 2), ("length", 1), ("", 0))


@functools.lru_cache(maxsize=1024)
def at_least(symbol: str) -> int:
    """The number that a size of this name is never below."""
    _, found, number = symbol.partition("_upto")[0].partition("_from")
    return int(number) if found else next(least for beginning, least in _AT_LEAST if symbol.startswith(beginning))


@functools.lru_cache(maxsize=1024)
def at_most(symbol: str) -> Optional[int]:
    """The number that a size of this name is never above; None where there is none."""
    _, found, number = symbol.partition("_upto")
    return int(number) if found else None
