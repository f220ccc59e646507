"""Variables of the user's that are given another array: ``parameter.array = a``."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple, Type

from ..errors import Location
from ..heap.locations import user_location
from ..record.guards import IdentityMatch
from ..record.paths import Attribute, Source
from ..record.writes import RebindArray, Write
from ..symbolic.values import SymbolicArray, SymbolicVariable

if TYPE_CHECKING:
    from .protocols import Capture


class _Rebound:
    """One Variable.  before: its array at the start.  given: what it has now, and stored: as last written back.  at: the line."""

    def __init__(self, variable: SymbolicVariable):
        self.variable, self.before = variable, variable._data[0]
        self.given = self.stored = self.before
        self.at = user_location()


class ReboundArrays:
    """The Variables of one capture that have another array now."""

    def __init__(self, capture: Capture):
        self.capture = capture
        self._rebound: Dict[int, _Rebound] = {}

    def assign(self, variable: SymbolicVariable, name: str, item: Any) -> None:
        """``variable.array = item``, or of ``data``."""
        own, capture = variable.__dict__, self.capture
        capture.check()
        if "source" not in own or "exposed" in own or capture.staging.depth or capture.builder is not capture.root \
                or type(item) is not SymbolicArray or item.is_scalar or item.type != variable.value.type:
            # a backward that reads what a part gave would read what was there before
            capture.abort(f"`.{name}` of a Variable is assigned inside the compiled function", whole=True)
        self._check_leaf(variable)
        capture.heap.check_fresh()
        known = self._rebound.setdefault(id(variable), _Rebound(variable))
        capture.array_writes.overwritten.rebound(variable._data[0])
        known.given = item
        own["_data"] = [capture.chainer.leaf(item, variable.requires_grad)]
        capture.gradients.know_again(variable)

    def has(self, variable: SymbolicVariable) -> bool:
        """Whether a Variable has another array than at the start."""
        return id(variable) in self._rebound

    def at(self, variable: SymbolicVariable) -> Optional[Location]:
        """The line that first gave a Variable another array."""
        known = self._rebound.get(id(variable))
        return None if known is None else known.at

    def changes(self) -> List[Tuple[Source, Type[Write], Any, Any]]:
        """The arrays that are new since the last call."""
        found = [(known.variable.__dict__["source"], RebindArray, None, known.given)
                 for known in self._rebound.values() if known.given is not known.stored]
        for known in self._rebound.values():
            known.stored = known.given
        return found

    def written_back(self) -> Tuple[SymbolicArray, ...]:
        """The arrays that were last written back, by Variable."""
        return tuple([known.stored for known in self._rebound.values()])

    def set_written_back(self, stored: Sequence[SymbolicArray]) -> None:
        """Undo what a block has written back: ``stored`` was so before it.  In a block no Variable gets another array."""
        for known, array in zip(self._rebound.values(), stored):
            known.stored = array

    def start_again(self) -> None:
        """As before the function was called."""
        for known in self._rebound.values():
            known.variable.__dict__["_data"] = [known.before]
        self._rebound.clear()

    def _check_leaf(self, variable: SymbolicVariable) -> None:
        """Guard that the Variable has no creator: what was computed with it before the call keeps the array that it had."""
        source, heap = variable.__dict__["source"], self.capture.heap
        if heap.real_of(variable).creator_node is not None:
            self.capture.abort("a Variable that a function gave gets another array inside the compiled function", whole=True)
        heap.guard(IdentityMatch(heap.source(Attribute, source, "creator_node"), None))
