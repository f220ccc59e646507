"""Gradients, and the Variables that have them."""
from __future__ import annotations

from typing import Any, Iterable, Mapping, Optional, Protocol, Sequence, Tuple

from ..ir.graph import Node, Value
from .values import SymbolicArray, SymbolicVariable


class KeptGradient(Protocol):
    """The gradient of one Variable now, when this was made, as last written back, and the loss scale that was."""

    gradient: Any
    initial: Any
    before: Any
    stored_scale: Any


class Crossings(Protocol):
    """Gradients that may lead through earlier iterations of a loop."""

    def check_loop(self, pairs: Sequence[Tuple[Value, Value]], body: Sequence[Node], initial: Mapping[Value, Value],
                   after: Mapping[Value, Value]) -> None:
        """Stop unless the second Variable of each pair is new in every iteration, and the first is not computed from it."""


class Unchaining(Protocol):
    """Variables that lose their creators."""

    def unchain(self, variable: SymbolicVariable) -> None:
        """`Variable.unchain`."""

    def unchain_backward(self, variable: SymbolicVariable) -> None:
        """`Variable.unchain_backward`."""


class Gradients(Protocol):
    """Gradients that the function itself asks for.  taken: how often.  crossings: whether they stay in an iteration."""

    taken: int

    @property
    def crossings(self) -> Crossings:
        """Gradients that may lead through earlier iterations."""

    @property
    def unchaining(self) -> Unchaining:
        """Variables that lose their creators."""

    def note(self, variable: SymbolicVariable) -> None:
        """Know a new Variable."""

    def backward(self, variable: SymbolicVariable, retain_grad: Any = False, enable_double_backprop: Any = False,
                 loss_scale: Any = None) -> None:
        """`Variable.backward`."""

    def creator(self, variable: SymbolicVariable) -> None:
        """`Variable.creator`, where that is None."""


class GradientState(Protocol):
    """The gradients that Variables keep."""

    def shown(self, variable: SymbolicVariable) -> Optional[SymbolicVariable]:
        """``variable.grad_var`` as the user reads it, who may keep it."""

    def array(self, variable: SymbolicVariable) -> Optional[SymbolicArray]:
        """``variable.grad``."""

    def loss_scale(self, variable: SymbolicVariable) -> Any:
        """The loss scale that `backward` left at a Variable."""

    def assign(self, variable: SymbolicVariable, name: str, item: Any) -> None:
        """``variable.grad = item`` or ``variable.grad_var = item``."""

    @property
    def places(self) -> Iterable[KeptGradient]:
        """The gradients of the user's Variables."""

    def set(self, variable: SymbolicVariable, gradient: Optional[SymbolicVariable], cleared: bool = False) -> None:
        """Let a Variable keep this gradient."""

    def zero(self, variable: SymbolicVariable) -> None:
        """``variable.zerograd()``."""

    def join(self, made: SymbolicVariable, sides: Sequence[SymbolicVariable], known: bool = True) -> None:
        """Note that a Variable is one of several, by a decision."""


class ReboundArrays(Protocol):
    """Variables that are given another array."""

    def assign(self, variable: SymbolicVariable, name: str, item: Any) -> None:
        """``variable.array = item``."""

    def written_back(self) -> Tuple[SymbolicArray, ...]:
        """The arrays that were last written back, by Variable."""

    def set_written_back(self, stored: Sequence[SymbolicArray]) -> None:
        """Undo what a block has written back: ``stored`` was so before it."""


class MadeParameters(Protocol):
    """Parameters that are made inside."""

    def copied(self, variable: Any, deep: bool) -> Any:
        """A copy of a Parameter."""
