"""What stops a capture that needs the number of a size which is to be left open."""
from __future__ import annotations

from types import MappingProxyType
from typing import Any, Mapping


class SizeNeeded(BaseException):
    """Whether something is as in the call that is captured depends on a size of the caller's arrays: it cannot be left open.

    BaseException, so that no code of the user's takes it for an error of its own.
    sizes: the symbols.  limits: for some of them a number, below which the answer may not depend on it.  steps: for some of them a
    number, and it may not depend on more than whether they are multiples of that.
    """

    def __init__(self, what: str, size: Any, limits: Mapping[str, int] = MappingProxyType({}),
                 steps: Mapping[str, int] = MappingProxyType({})):
        super().__init__(f"{what} depends on a size that is not fixed")
        self.sizes, self.limits, self.steps = size.symbols, limits, steps
