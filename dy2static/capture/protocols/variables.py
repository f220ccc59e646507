"""What the parts of a capture ask of those that know Variables: gradients that they keep, Parameters, other arrays."""
from __future__ import annotations

from typing import Any, List, Optional, Protocol, Tuple, Type

from ...capture_context import gradients
from ...errors import Location
from ...ir.graph import Value
from ...record.paths import Source
from ...record.writes import Write
from ...symbolic.values import SymbolicArray, SymbolicParameter, SymbolicVariable


class GradientState(gradients.GradientState, Protocol):
    """The gradients that the Variables of one capture keep."""

    def changes(self) -> List[Tuple[Source, Type[Write], Any, Any]]:
        """The gradients and loss scales of the user's Variables that are new since the last call."""

    def drop(self) -> None:
        """Clear the gradients of the Parameters whose arrays the call has written."""

    def get(self, variable: SymbolicVariable) -> Optional[SymbolicVariable]:
        """``variable.grad_var``."""

    @property
    def is_ahead(self) -> bool:
        """Whether the user's Variables do not have all of these gradients yet."""

    def keeps(self, variable: SymbolicVariable) -> bool:
        """Whether a Variable made here has, or may have, a gradient."""

    def real(self, variable: SymbolicVariable) -> Any:
        """The Variable of the user's that a symbolic one stands for."""

    def set_loss_scale(self, variable: SymbolicVariable, scale: Any) -> None:
        """Let a Variable, whose gradient has just been set, keep the scale of the loss."""

    def stored(self) -> None:
        """The gradients are stored now: from here on their arrays belong to Variables that the user can look at."""

    def write_again(self) -> None:
        """Write into the arrays of stored gradients what was written since, and let the graph hold these arrays themselves."""


class MadeParameters(gradients.MadeParameters, Protocol):
    """The Parameters that one capture makes."""

    def array(self, initializer: Any, shape: Any, xp: Any, dtype: Any = None, device: Any = None) -> SymbolicArray:
        """``chainer.initializers.generate_array(...)`` of an array of NumPy's."""

    def make(self, *args: Any, **kwargs: Any) -> SymbolicParameter:
        """``chainer.Parameter(*args, **kwargs)``."""


class ReboundArrays(gradients.ReboundArrays, Protocol):
    """The Variables of one capture that have another array now."""

    def at(self, variable: SymbolicVariable) -> Optional[Location]:
        """The line that first gave a Variable another array."""

    def changes(self) -> List[Tuple[Source, Type[Write], Any, Any]]:
        """The arrays that are new since the last call."""

    def has(self, variable: SymbolicVariable) -> bool:
        """Whether a Variable has another array than at the start."""


class Unchaining(gradients.Unchaining, Protocol):
    """Variables of one capture that lose their creators."""

    def check_leaving(self, values: List[Value]) -> None:
        """Stop if one of these values leaves the call with a graph that a run may have unchained."""
