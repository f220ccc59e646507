"""The context by which `decimal` computes."""
from __future__ import annotations

import decimal
from typing import Tuple


def decimal_settings() -> Tuple[object, ...]:
    """What the present context says about results: precision, rounding, limits, form, and which signals are raised."""
    now = decimal.getcontext()
    raised = tuple([signal.__name__ for signal, is_raised in now.traps.items() if is_raised])
    return now.prec, now.rounding, now.Emin, now.Emax, now.capitals, now.clamp, raised
