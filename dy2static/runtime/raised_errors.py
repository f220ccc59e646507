"""Whether NumPy's floating-point errors and warnings are exceptions now."""
from __future__ import annotations

import warnings
from typing import List

import numpy as np

from ..errors import CheckWarning, ExportWarning, FallbackWarning, SaveWarning, SettingWarning

#: What computations do not give.
_OTHERS = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning,
           CheckWarning, ExportWarning, FallbackWarning, SaveWarning, SettingWarning)


#: The warning filters of the last look, if none of them raises what computations may give.
_harmless: List[tuple] = []


def errors_are_raised() -> bool:
    """Whether a floating-point error calls code or raises, or a warning raises that computations may give."""
    global _harmless
    if not {"raise", "call"}.isdisjoint(np.geterr().values()):
        return True
    if warnings.filters == _harmless:           # a comparison of the same objects, mostly
        return False
    filters: List[tuple] = list(warnings.filters)
    if any([action == "error" and not issubclass(category, _OTHERS) for action, _, category, *_ in filters]):
        return True
    _harmless = filters
    return False
