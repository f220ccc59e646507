"""Variables that leave a call."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from ..ir.graph import Value


@dataclass(eq=False)
class EscapingVariable:
    """A Variable made during the capture that the user can get hold of.

    value: its array.  connected: it has a creator.  early: the Variable itself, where host calls have seen it, for each way
    through the function; a run makes at most one of them.
    """

    value: Value
    requires_grad: bool
    connected: bool
    early: Tuple[Value, ...] = ()
