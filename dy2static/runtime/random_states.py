"""The states of the global generators: taken, compared and put back."""
from __future__ import annotations

import random
from typing import Any, Tuple

import numpy as np


def random_states() -> Tuple[Any, Any]:
    """The states of NumPy's and of Python's global generator."""
    return np.random.get_state(legacy=False), random.getstate()


def set_random_states(states: Tuple[Any, Any]) -> bool:
    """Put both generators back; whether they had moved."""
    if same_random_states(random_states(), states):
        return False
    np.random.set_state(states[0])
    random.setstate(states[1])
    return True


def same_random_states(one: Tuple[Any, Any], other: Tuple[Any, Any]) -> bool:
    """Whether two answers of `random_states` are equal."""
    return one[1] == other[1] and _same(one[0], other[0])


def _same(one: Any, other: Any) -> bool:
    """Of what NumPy tells of a generator: dicts, arrays and numbers, by its kind."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all([_same(one[key], other[key]) for key in one])
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else bool(one == other)
