"""Faster texts for ops in special cases, in place of their own templates."""
from __future__ import annotations

from ..host.special import SPECIAL as OF_NUMPY

#: Those of NumPy, but for the mean, which is one kernel of CuPy's.
SPECIAL = {name: rule for name, rule in OF_NUMPY.items() if name != "mean"}
