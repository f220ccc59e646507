"""Pieces of generated code."""
from __future__ import annotations

from typing import Sequence


def commas(items: Sequence[str]) -> str:
    """The items of a tuple as text."""
    return f"{items[0]}," if len(items) == 1 else ", ".join(items)
