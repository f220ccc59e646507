"""What the parts of `Staging` ask of it, and of each other.  They stand below it, so they know it by these protocols."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple

from ..capture_context import CaptureContext
from ..ir.graph import Value
from ..symbolic.rollback import Snapshot
from ..symbolic.variable_identity import Choices
from .branches import Branch, Decided
from .loop_carried_trees import Replaced
from .path_splitting import Path


class Joins(Protocol):
    """What joins two branches."""

    @property
    def capture(self) -> CaptureContext:
        """The capture."""

    @property
    def staging(self) -> Staging:
        """The decisions of the capture."""

    def join(self, predicate: Value, branches: List[Branch], before: Optional[Snapshot], names: Sequence[str],
             truth: bool) -> Tuple:
        """Join two captured branches into one node, and return the results."""

    def merge_variables(self, a: Any, b: Any, branches: List[Branch], name: str) -> Callable[[Sequence[Value]], Any]:
        """How to make, from the outputs of the node, the Variable that is one of two."""

    def output(self, branches: List[Branch], a: Value, b: Value) -> int:
        """The place of what is ``a`` or ``b`` among the outputs of the node."""

    def filler(self, item: Any, branch: Any) -> Any:
        """Something of the same kind, for where a name is unbound."""


class Blocks(Protocol):
    """What captures blocks."""

    def run_block(self, block: Callable, state: Tuple, before: Snapshot) -> Tuple[Any, Mapping]:
        """What a block gives, and the marks of the path through it."""

    def raise_at_run(self, error: BaseException) -> None:
        """Raise an error of the user's in the runs that come here."""


class Loops(Protocol):
    """What captures loops."""

    def while_(self, again: Any, test: Callable, body: Callable, state: Tuple, names: Sequence[str] = ()) -> Tuple:
        """``while`` on a symbolic test."""

    def counted(self, sequence: Any, body: Callable, state: Tuple, names: Sequence[str]) -> Tuple:
        """``for`` over what has a length that only the run knows."""

    def attempted(self, loop: Callable[[], Tuple], roots: Tuple) -> Optional[Tuple]:
        """What a loop gives that may not be possible; None if it is not."""


class Staging(Protocol):
    """The decisions of one capture: see `staging.Staging`."""

    choices: Choices
    truths: Dict[Value, Decided]
    made_up: Dict[int, Any]
    depth: int
    in_loop: int
    growing: int
    path: Path

    @property
    def capture(self) -> CaptureContext:
        """The capture."""

    @property
    def replaced(self) -> Replaced:
        """Containers that stand for one object in some runs."""

    @property
    def blocks(self) -> Blocks:
        """What captures blocks."""

    @property
    def joins(self) -> Joins:
        """What joins branches."""

    @property
    def loops(self) -> Loops:
        """What captures loops."""

    def cond(self, test: Any, then: Callable, orelse: Callable, state: Tuple, names: Sequence[str] = (),
             others: Tuple = ()) -> Tuple:
        """``if`` on a symbolic test."""

    def truth(self, value: Any) -> Any:
        """The truth of a value."""

    def is_inexact(self, value: Any) -> bool:
        """Whether only the truth of a value is known."""

    def predicate(self, test: Any) -> Value:
        """The truth of a test as a value of the graph."""

    def region(self) -> Any:
        """Nodes made inside go into a region."""
