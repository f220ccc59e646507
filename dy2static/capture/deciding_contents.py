"""Arrays of whole numbers whose contents decide sizes, slices or what Python does: known in a capture, under a guard.

A capture takes contents for unknown at first: then one program serves all.  Where that cannot be, the next attempt knows what
the arrays hold that decided something (lengths of sequences, mostly), and the program is for arrays that hold the same.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, AbstractSet, Any, Dict, FrozenSet, Iterator, List, Optional, Sequence, Set, Tuple

import numpy as np

from ..ir.graph import Node, Value
from ..ir.types import Tensor
from ..lowering.host import checked_call, sized_call
from ..record.guards import ContentsMatch
from ..record.inputs import NumberInput
from ..record.paths import Source, expression_path, paths_of, with_siblings
from ..symbolic.values import SymbolicArray, SymbolicScalar

if TYPE_CHECKING:
    from .protocols import Capture

#: Larger arrays are data, not lengths: their contents are never guarded.
_MOST = 1024

#: Nodes with an effect, of failing, whose results follow from their operands.
_CALLS = (checked_call, sized_call)

#: Values, and the nodes there were.
_Noted = List[Tuple[Value, Tuple[Sequence[Node], ...]]]

_NOTHING = frozenset()                                  # type: ignore[var-annotated]


def _is_small(array: np.ndarray) -> bool:
    return type(array) is np.ndarray and array.dtype.kind in "iub" and array.size <= _MOST


class DecidingContents:
    """What decides something in one capture.

    fixed: the paths (`with_siblings`) of the arrays whose contents are known, under a guard, and of numbers that are; the
    `expression_path` of expressions over numbers.
    exposures: how many calls of unknown code there were, which may write into arrays.
    """

    def __init__(self, capture: Capture, fixed: AbstractSet[Tuple]):
        self.capture, self.fixed = capture, fixed
        self._small: Dict[Value, Source] = {}
        self.exposures = 0
        self._is_exposed = False                        # whether unknown code got an array
        self._noted: Tuple[_Noted, _Noted, _Noted] = [], [], []

    def is_fixed(self, source: Source, real: np.ndarray) -> bool:
        """Whether the contents of this array of the caller's are known."""
        return bool(self.fixed) and _is_small(real) and with_siblings(source.path()) in self.fixed

    def is_fixed_expression(self, text: str) -> bool:
        """Whether the value of an expression over numbers is known."""
        return bool(self.fixed) and expression_path(text, self.capture.inputs.named) in self.fixed

    def entered(self, value: Value, source: Source, real: np.ndarray) -> None:
        """An array among the inputs of the graph."""
        if not _is_small(real):
            return
        self._small[value] = source
        if self.is_fixed(source, real):
            self.capture.heap.guard(ContentsMatch(source, real.tobytes()))
            self.capture.known[value] = real.copy()

    def exposed(self, operands: Sequence[Value]) -> None:
        """A call of unknown code gets these: it may write into them, and into arrays of the caller's.

        What was computed before is not what the same call gives afterwards, and what arrays hold is not known any more.
        """
        capture = self.capture
        self.exposures += 1
        capture.value_numbering.clear()
        capture.sizes_of.clear()
        capture.index_ranges.arrays.clear()
        self._is_exposed = self._is_exposed or any(isinstance(v.type, Tensor) for v in operands)
        known = [v for v in capture.known if isinstance(v.type, Tensor)]
        if not known or not self._is_exposed and self._small.keys().isdisjoint(known):
            return
        for value in known:
            del capture.known[value]

    def needed(self, number: Any) -> None:
        """Python needs this number, or this array: the capture stops, if it is not known."""
        self._note(0, number)

    def sizes(self, *numbers: Any) -> None:
        """These values decide a size."""
        self._note(1, *numbers)

    def decides(self, number: Any) -> None:
        """This value decides what is done."""
        self._note(2, number)

    def _note(self, kind: int, *numbers: Any) -> None:
        lists = tuple(builder.nodes for builder in self._builders())[::-1]
        for item in numbers:
            value = item.now() if type(item) is SymbolicArray else item._value if type(item) is SymbolicScalar else item
            if isinstance(value, Value):
                self._noted[kind].append((value, lists))

    def _builders(self) -> Iterator[Any]:
        builder = self.capture.builder
        while builder is not None:
            yield builder
            builder = builder.outer

    def paths(self) -> Set[Tuple]:
        """The paths of what has decided something, and is not fixed yet: small arrays of whole numbers, numbers, and expressions.

        What Python needed comes first, then sizes, with which something may have been unable to work, and only then decisions.
        Of values that depend on anything else there are none: no guard could tell what they are.
        """
        origins = self._origins() if any(self._noted) else {}
        for noted in self._noted:
            found = set().union(*[origins.get(value) or _NOTHING for value, _ in noted]) - self.fixed
            if found:
                return found
        return set()

    def numbers_of(self, paths: Set[Tuple]) -> Sequence[Tuple]:
        """The paths of the numbers by themselves, and in expressions, among what `paths` gave."""
        found: Set[Tuple] = set().union(*map(paths_of, paths))
        return [source.path() for _, source in self.capture.inputs.named if with_siblings(source.path()) in found]

    def _origins(self) -> Dict[Value, Optional[FrozenSet[Tuple]]]:
        """By value, the paths of all that it is made of; None where that is something else than arrays and numbers to be fixed."""
        found: Dict[Value, Optional[FrozenSet[Tuple]]] = {
            item.value: self._of_number(item.expression) for item in self.capture.inputs.all if isinstance(item, NumberInput)}
        found.update({value: frozenset((with_siblings(source.path()),)) for value, source in self._small.items()})
        for nodes in {id(nodes): nodes for noted in self._noted for _, lists in noted for nodes in lists}.values():
            for node in nodes:
                parts = [found.get(value) for value in node.inputs]
                is_open = None in parts or node.op.effect and node.op not in _CALLS
                found.update(dict.fromkeys(node.outputs, None if is_open else _NOTHING.union(*parts)))
        return found

    def _of_number(self, text: str) -> FrozenSet[Tuple]:
        """What fixes an expression over numbers: its value; the numbers, if that is known and has not helped."""
        path = expression_path(text, self.capture.inputs.named)
        return frozenset((path,)) if path not in self.fixed else paths_of(path)
