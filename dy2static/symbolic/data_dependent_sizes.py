"""Sizes of results that the contents of arrays decide: symbols that the run gives their numbers."""
from __future__ import annotations

from typing import Any, Dict, Sequence, Set

from ..capture_context import CaptureContext
from ..ir.building import new_extent
from ..ir.dims import Dim
from ..ir.graph import Value
from ..ir.types import Scalar, Tensor
from ..library_facts.by_name import known_as
from .abstract_eval import FILLINGS, stand_in

#: Functions that give several arrays, all of one size.
_ALIKE = known_as("alike").union(("class_counts",))

#: Functions of an array whose contents have no part in it: the other operands decide.
_OF_OTHERS = ("getitem", "repeat")


class NewSizes:
    """Sizes of the results of one call that contents of its operands decide.

    fresh: those that no value has had before.
    """

    def __init__(self, capture: CaptureContext, name: str, operands: Sequence[Any]):
        self.capture, self.name, self.operands = capture, name, operands
        self.made: Dict[Any, Dim] = {}
        self.of: Dict[Value, Dim] = {}
        self.fresh: Set[Dim] = set()

    def size(self, numbers: Sequence[Any], result: int, axis: int) -> Any:
        """The size that was ``numbers`` in the trials: that of an operand, the number of a mask's elements, or a new one."""
        capture = self.capture
        is_read = len(self.operands) > 1 and self.name in _OF_OTHERS and isinstance(self.operands[0].type, Tensor)
        capture.deciding.sizes(*self.operands[is_read:])
        if capture.staging.in_loop:
            raise ValueError("the size of the result depends on the contents of an array, inside a loop on array values")
        of = self._decides(numbers)
        key = str(numbers) if self.name in _ALIKE else (result, axis)
        if key not in self.made:
            first = None if of is None else capture.value_numbering.first(of)
            known = self._known(first)
            self.made[key] = size = Dim(f"{new_extent()}" + f"_{len(self.made)}" * bool(self.made)) if known is None else known
            if known is None:
                self.fresh.add(size)
            if first is not None:
                self.of[first] = size
        return self.made[key]

    def _known(self, of: Any) -> Any:
        """The size that this value decided before, in what is being built."""
        size, made = self.capture.sizes_of.get(of, (None, None))
        builder = self.capture.builder
        while builder is not None and size is not None:
            if any(made in node.outputs for node in builder.nodes):
                return size
            builder = builder.outer
        return None

    def note(self, outputs: Sequence[Value]) -> None:
        """These are the results of the call."""
        for of, size in self.of.items():
            self.capture.sizes_of[of] = size, outputs[0]

    def _decides(self, numbers: Sequence[Any]) -> Any:
        """The operand that is the number, or the mask that has that many elements."""
        for place, operand in enumerate(self.operands):
            if isinstance(operand.type, Scalar) and operand.dtype.kind in "iu" and operand not in self.capture.dimensions and \
                    list(numbers) == [stand_in(operand.type, filling, place) for filling in FILLINGS]:
                return operand
        masks = [v for v in self.operands if isinstance(v.type, Tensor) and v.dtype.kind == "b"]
        return masks[0] if self.name in ("true_rows", "nonzero", "flatnonzero") and masks or \
            self.name == "getitem" and len(self.operands) == 2 and masks[:1] == [self.operands[1]] else None


def may_be_empty(types: Sequence[Any]) -> bool:
    """Whether contents decide the size of one of these arrays: then there are functions that fail on it."""
    return any(isinstance(n, Dim) and any(symbol.startswith("size") for symbol in n.symbols)
               for t in types if isinstance(t, Tensor) for n in t.shape)
