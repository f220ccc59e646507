"""What the names of sizes say of them: from which number on, and up to which.

Those that begin with "length" are never zero, others may be.  Those of the caller's arrays, which begin with "length_n", are two
or more; ``length_n0_from8``: eight or more; ``length_n0_upto64``: at most 64; ``length_n0_rest2of32``: by 32 it leaves two or more.
"""
from __future__ import annotations

import functools
from typing import Optional, Tuple

#: How the names of symbols begin that stand for sizes of the caller's arrays.
FREE = "length_n"
#: How the names of symbols begin that stand for so many or more.
_AT_LEAST = ((FREE, 2), ("length", 1), ("", 0))


@functools.lru_cache(maxsize=1024)
def at_least(symbol: str) -> int:
    """The number that a size of this name is never below."""
    _, found, number = symbol.partition("_rest")[0].partition("_upto")[0].partition("_from")
    return int(number) if found else next(least for beginning, least in _AT_LEAST if symbol.startswith(beginning))


@functools.lru_cache(maxsize=1024)
def at_most(symbol: str) -> Optional[int]:
    """The number that a size of this name is never above; None where there is none."""
    _, found, number = symbol.partition("_rest")[0].partition("_upto")
    return int(number) if found else None


@functools.lru_cache(maxsize=1024)
def least_rest(symbol: str, divisor: int) -> int:
    """The number that the rest of a size of this name by a number is never below."""
    least, step = rest_of(symbol)
    return least if step == divisor else 0


def rest_of(symbol: str) -> Tuple[int, int]:
    """The number that a rest of a size of this name is never below, and the number by which that is the rest; (0, 1) if none is."""
    _, found, rest = symbol.partition("_rest")
    least, _, step = rest.partition("of")
    return (int(least), int(step)) if found else (0, 1)
