"""Decimals are computed while a call is captured: the program relies on the context of `decimal`."""
from __future__ import annotations

import decimal
from typing import Any

from ..capture_context import Heap
from ..record.guards import DecimalsMatch
from ..runtime.decimals import decimal_settings


def rely_on_decimals(heap: Heap, function: Any = None) -> None:
    """Guard the context.  function: of `decimal`, which is about to be called: stop where it may replace the context."""
    if function in (decimal.getcontext, decimal.setcontext):
        heap.capture.abort("the context of `decimal` is used", hint="do this outside of the compiled function")
    if DecimalsMatch not in map(type, heap.guards):
        heap.guard(DecimalsMatch(decimal_settings()))
