"""The generators of random numbers that a user may have."""
from __future__ import annotations

import random
from typing import Any, Callable, Dict

import numpy as np

#: Their classes, and how to make another one, for a trial.
GENERATORS: Dict[type, Callable[..., Any]] = {
    np.random.RandomState: np.random.RandomState, np.random.Generator: np.random.default_rng, random.Random: random.Random}
