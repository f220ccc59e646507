"""What an array shares with its views, once one of them is written."""
from __future__ import annotations

from typing import Any, Optional

from ..record.paths import Source
from .values import SymbolicArray


class Memory:
    """What an array and its views share.

    contents: an array without other references.  initial: before the first write.  stored: what the array of the user's
    holds by now.  source: of that array; None for one that is made in the call.  serial: when the root was made.
    """

    __slots__ = ("root", "contents", "initial", "stored", "source", "serial")

    def __init__(self, root: SymbolicArray, contents: SymbolicArray, source: Optional[Source], serial: int):
        self.root, self.source, self.serial = root, source, serial
        self.contents = self.initial = self.stored = contents


class Unsure:
    """Stands for the memory of an array while it is not known whether the array is a view of another one that was written.

    decision: what the run decides by; None if there is no such decision.
    """

    source = None

    def __init__(self, array: SymbolicArray, decision: Any):
        self.capture, self.decision = array.capture, decision

    @property
    def root(self) -> SymbolicArray:
        """Stops the capture, too: it is asked for before a write."""
        return self.contents

    @property
    def contents(self) -> SymbolicArray:
        """Stops the capture: it is asked for where the array is read."""
        return self.capture.abort("an array is read after another one was changed in place that it may share memory with",
                                  hint="copy it before the change", because=self.decision)
