"""Which functions of NumPy and methods of arrays enter expressions; the others are called at once."""
from __future__ import annotations

from typing import Any, FrozenSet

import numpy as np

from ..library_facts import lazy, numpy
from ..library_facts.table import Table, members, named

_MARKS_AT_ONCE = {"types", "writes", "refused", "impure", "asks", "changes", "misleading", "memory"}


def _expressed(owner: Any, table: Table, others: Table) -> FrozenSet[Any]:
    """The functions of a module that enter expressions."""
    return frozenset([function for name, function in members(owner, "saved", table)
                      if not table[name] & _MARKS_AT_ONCE and name not in named("at_once", others) and callable(function)])


def _with(mark: str, table: Table = lazy.FUNCTIONS) -> FrozenSet[Any]:
    return frozenset([function for _, function in members(np, mark, table)])


#: Functions that enter expressions.
FUNCTIONS = _expressed(np, numpy.FUNCTIONS, lazy.FUNCTIONS) | _expressed(np.linalg, numpy.LINALG, lazy.LINALG)

#: Functions that look at values and give no array: nothing is said of these.
LOOKS = _with("looks")

#: Methods that enter expressions, those that write into their array, and those that change it otherwise.
METHODS, CHANGING_METHODS, REFUSED_METHODS = [named(mark, lazy.METHODS) for mark in ("built", "changes", "refused")]

#: Functions that write into their first argument.
CHANGING = _with("writes", numpy.FUNCTIONS)

#: Functions whose result may see the memory of their first argument; of these, those that may also copy, those whose result
#: cannot be written to, and those that are computed when they are needed.
VIEWS, MAYBE_VIEWS, READ_ONLY_VIEWS, LATE_VIEWS = _with("sees"), _with("memory"), _with("fixed"), _with("late")
