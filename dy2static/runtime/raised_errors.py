"""Whether NumPy's floating-point errors and warnings are exceptions now."""
from __future__ import annotations

import warnings

import numpy as np

_OF_LIBRARIES = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


def errors_are_raised() -> bool:
    """Whether a floating-point error calls code or raises, or a warning raises that computations may give."""
    if not {"raise", "call"}.isdisjoint(np.geterr().values()):
        return True
    return any([action == "error" and not issubclass(category, _OF_LIBRARIES) for action, _, category, *_ in warnings.filters])
