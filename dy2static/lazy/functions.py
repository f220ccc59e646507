"""Which functions of NumPy and methods of arrays enter expressions; the others are called at once."""
from __future__ import annotations

import numpy as np

from ..library_facts import numpy as facts

_MARKS_AT_ONCE = {"types", "writes", "refused", "impure", "asks", "changes", "misleading", "memory"}

#: Functions that give several arrays, Python objects, or results that are as many as contents decide.
_AT_ONCE = frozenset("""
    nonzero unique meshgrid broadcast_arrays split array_split hsplit vsplit dsplit histogram histogram2d histogramdd ix_
    diag_indices diag_indices_from tril_indices triu_indices tril_indices_from triu_indices_from unravel_index atleast_1d
    atleast_2d atleast_3d
    gradient unstack polydiv polyfit allclose array_equal array_equiv block average nanpercentile nanquantile
    lstsq slogdet svd eigh qr LinAlgError lexsort select choose argwhere flatnonzero extract compress
    intersect1d setdiff1d setxor1d union1d
""".split())


def _lazy(table: dict) -> frozenset:
    return frozenset([name for name, marks in table.items() if "saved" in marks and not marks & _MARKS_AT_ONCE]) - _AT_ONCE


#: Functions that enter expressions.
FUNCTIONS = frozenset(
    [getattr(module, name) for module, names in ((np, _lazy(facts.FUNCTIONS)), (np.linalg, _lazy(facts.LINALG)))
     for name in names if callable(getattr(module, name, None))])

#: Functions that look at values and give no array: nothing is said of these.
LOOKS = frozenset([getattr(np, name) for name in "allclose array_equal array_equiv array2string array_repr array_str "
                   "result_type can_cast iscomplexobj isrealobj may_share_memory shares_memory save savez savetxt common_type "
                   "min_scalar_type".split()])

#: Methods that enter expressions.
METHODS = ("all any argmax argmin argpartition argsort astype clip conj conjugate copy cumprod cumsum diagonal dot flatten max "
           "mean min prod ravel repeat reshape round searchsorted squeeze std sum swapaxes take trace transpose var").split()

#: Functions that write into their first argument.
CHANGING = frozenset([getattr(np, name) for name, marks in facts.FUNCTIONS.items() if "writes" in marks and hasattr(np, name)])

#: Functions whose result may see the memory of their first argument; of these, those that may also copy, and those whose result
#: cannot be written to.
MAYBE_VIEWS = frozenset({np.reshape, np.ravel})
READ_ONLY_VIEWS = frozenset({np.broadcast_to, np.diagonal})
VIEWS = MAYBE_VIEWS | READ_ONLY_VIEWS | frozenset([getattr(np, name) for name in (
    "transpose swapaxes moveaxis rollaxis squeeze expand_dims flip fliplr flipud rot90 matrix_transpose permute_dims").split()
    if hasattr(np, name)])
