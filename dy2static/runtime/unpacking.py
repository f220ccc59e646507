"""The parts of an item of a loop or a comprehension that assigns to several names."""
from __future__ import annotations

from typing import Any, Tuple


def _two(item: Any) -> Tuple:
    first, second = item
    return first, second


def _three(item: Any) -> Tuple:
    first, second, third = item
    return first, second, third


#: The parts of an item, by how many there must be; 0 for the item itself.
UNPACKED = {0: lambda item: (item,), 2: _two, 3: _three}
