"""Whether NumPy's floating-point errors and warnings are exceptions now."""
from __future__ import annotations

import warnings

import numpy as np

from ..errors import CheckWarning, ExportWarning, FallbackWarning, SaveWarning, SettingWarning

#: What computations do not give.
_OTHERS = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning,
           CheckWarning, ExportWarning, FallbackWarning, SaveWarning, SettingWarning)


def errors_are_raised() -> bool:
    """Whether a floating-point error calls code or raises, or a warning raises that computations may give."""
    if not {"raise", "call"}.isdisjoint(np.geterr().values()):
        return True
    return any([action == "error" and not issubclass(category, _OTHERS) for action, _, category, *_ in warnings.filters])
