"""Sizes as text: in words for users, and in expressions of generated code."""
from __future__ import annotations

from typing import Optional, Tuple

from .dims import Dim, Size, as_multiple
from .size_symbols import at_least, at_most


def divided_text(text: str, factor: int) -> str:
    """An expression in a text, divided by a factor."""
    return text if factor == 1 else f"{text} // {factor}"


def described(shape: Tuple[Size, ...]) -> str:
    """A shape in words for users: ``(3 or more, 4)``."""
    return f"({', '.join(map(_described, shape))}{',' if len(shape) == 1 else ''})"


def _described(size: Size) -> str:
    multiple = as_multiple(size)
    if multiple is None:
        return "a computed size" if isinstance(size, Dim) else str(size)
    symbol, factor = multiple
    most = at_most(symbol)
    return in_words(factor * at_least(symbol), factor, most and factor * most)


def in_words(least: int, factor: int, most: Optional[int]) -> str:
    """Which multiples of a factor sizes may be, from the least to the most; None for no limit."""
    return f"{'' if factor == 1 else f'a multiple of {factor}, '}{least} {'or more' if most is None else f'to {most}'}"
