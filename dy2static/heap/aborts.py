"""How a capture ends early.  BaseException, so that no ``except Exception`` of user code can swallow it."""
from __future__ import annotations

from typing import Any, Optional, Tuple

from ..errors import Location
from .wording import hint_for


class CaptureAborted(BaseException):
    """The call cannot be put into a graph; nothing real was touched.

    reason: for the user.  hint: what would help.  again: whether a later call may be captured (parameters that are
    not initialized yet, results of an unknown function that are seen in this call).  observe: None, or the code of host
    calls whose results this call shows.  final: settling a decision would not help, nor would other bounds of free sizes.
    fork: the decision inside which this happened, as a path and a number; see `forks`.  events: what had been captured until
    then.  whole: the function cannot run in parts either.  passes: the call replaced a flag that it looked at, as
    in ``if not self.initialized``, so the next one may go another way.  sizes: the symbols of sizes whose numbers were needed.
    at_once: no other choice of free sizes is tried.
    assumed: None, or the symbol of a size that only the run knows, and the size that it must be.
    """

    def __init__(self, reason: str, at: Optional[Location] = None, hint: Optional[str] = None, again: bool = False,
                 observe: Any = None, final: bool = False, sizes: Tuple[str, ...] = (), whole: bool = False,
                 at_once: bool = False, assumed: Any = None):
        super().__init__(reason)
        self.reason, self.at, self.hint = reason, at, hint or hint_for(reason)
        self.again, self.observe = again, observe
        self.final, self.whole, self.at_once = final or again or at_once, whole, at_once
        self.fork: Any = None
        self.sizes, self.assumed = sizes, assumed
        self.passes = False
        self.events: Tuple[Any, ...] = ()
