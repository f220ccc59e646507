"""Arrays of all items of a list that only grows: kept as one array with room to grow."""
from __future__ import annotations

from typing import List

import numpy as np


class Rows:
    """The items of one list along a new first axis, of which each is copied once.

    The list is not empty, its items are arrays of one shape and dtype, and it may only have been appended to since the call before.
    """

    def __init__(self) -> None:
        self.array = np.empty(0)
        self.filled = 0

    def of(self, items: List[np.ndarray]) -> np.ndarray:
        """An array (len(items), ...) that must not be written to: a view of what later ones are views of, too."""
        count, first = len(items), items[0]
        if count > len(self.array):
            array = np.empty((2 * count, *first.shape), first.dtype)
            if self.filled:
                array[:self.filled] = self.array[:self.filled]
            self.array = array
        for k in range(self.filled, count):
            self.array[k] = items[k]
        self.filled = count
        return self.array[:count]
