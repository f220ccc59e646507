"""What a framework's file says: its cases, each something to call over and over, and how to check what it computes."""
from typing import Any, Callable, List, NamedTuple, Optional


class Case(NamedTuple):
    """One cell of one framework, ready to run.

    step: one measured unit of work; gives a handle.  check: the numbers of a handle that all frameworks agree on.
    wait: blocks until the handle is computed.  checked: how many of the first steps are checked.
    compiled: what tells of captures (a `StaticFunction`).
    """

    step: Callable[[], Any]
    check: Callable[[Any], List[float]]
    wait: Optional[Callable[[Any], Any]] = None
    checked: int = 1
    compiled: Any = None


class Cells:
    """The cells that a framework can do, and the modes in which it can."""

    def __init__(self):
        self.makers = {}        # cell -> {mode: function of (data, cell, mode)}
        self.cannot = {}        # (cell, mode) -> why not

    def of(self, cells, *modes):
        """A decorator: the function ``make(data, cell, mode)`` makes the cases of these cells in these modes."""
        def add(make):
            for cell in cells.split():
                self.makers.setdefault(cell, {}).update({mode: make for mode in modes})
            return make
        return add

    def cannot_do(self, cells, mode, why):
        for cell in cells.split():
            self.cannot[cell, mode] = why
