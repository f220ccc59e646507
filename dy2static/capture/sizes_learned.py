"""Results of functions of the user's for all sizes: as they followed the sizes of what earlier calls were given."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ..ir.dims import Dim, evaluate
from ..ir.types import Tensor
from ..symbolic.size_trials import fitted_types

#: So many numbers must have been seen for each size: a line goes through any two.
_ENOUGH = 3


class SizesLearned:
    """What calls of a function gave, for the sizes that operands had.

    observed: by (class, position in the call, types of operands), the types of what eager calls gave.
    inputs: the types of operands, with sizes that only the run knows.
    """

    def __init__(self, observed: Mapping[Tuple, Any], cls: type, position: int, inputs: Sequence[Any]):
        self._places: Dict[Dim, Tuple[int, int]] = {}       # of each size an operand and its axis
        for i, type_ in enumerate(inputs):
            for axis, size in enumerate(type_.shape if isinstance(type_, Tensor) else ()):
                if isinstance(size, Dim):
                    self._places.setdefault(size, (i, axis))
        self._given: Dict[Tuple[int, ...], Set[Any]] = {}   # what was given, by the numbers of these sizes
        for is_anywhere in (True, False):
            self._given.clear()
            for key, given in observed.items():
                if key[0] is cls and (is_anywhere or key[1] == position):
                    numbers = self._numbers(inputs, key[2])
                    if numbers is not None:
                        self._given.setdefault(numbers, set()).add(given)
            if self._is_clear:
                break

    @property
    def _is_clear(self) -> bool:
        return all([len(given) == 1 for given in self._given.values()])

    @property
    def _is_enough(self) -> bool:
        return len(self._given) >= _ENOUGH and all([len(set(numbers)) >= _ENOUGH for numbers in zip(*self._given)])

    def lacks(self, numbers: Mapping[str, int]) -> bool:
        """Whether more would be known after a call in which symbols have these numbers."""
        if self._is_enough or not self._is_clear or not all([set(size.symbols) <= numbers.keys() for size in self._places]):
            return False
        return tuple([evaluate(size, numbers) for size in self._places]) not in self._given

    def types(self) -> Optional[Tuple[Tuple[Any, ...], Tuple[Any, ...], Dict[str, Tuple[int, int, int]]]]:
        """The types of results with the sizes of operands, and with names for these, whose places (and factors) come third.

        None if too few sizes have been seen, or if results do not follow from them.
        """
        if not self._is_enough or not self._is_clear:
            return None
        names = {f"_{k}": size for k, size in enumerate(self._places)}
        trials = [(dict(zip(names, numbers)), given) for numbers, (given,) in self._given.items()]
        found, named = fitted_types(trials, names), fitted_types(trials)
        if found is None or named is None:
            return None
        return found, named, {name: (*self._places[size], 1) for name, size in names.items()}

    def _numbers(self, inputs: Sequence[Any], given: Sequence[Any]) -> Optional[Tuple[int, ...]]:
        """The numbers of the sizes in the types of a call; None if that had operands of another kind."""
        if len(inputs) != len(given) or not all(map(_alike, inputs, given)):
            return None
        numbers = {size: given[i].shape[axis] for size, (i, axis) in self._places.items()}
        shapes: List[Tuple] = [tuple([numbers.get(n, n) for n in type_.shape]) for type_ in inputs if isinstance(type_, Tensor)]
        return tuple(numbers.values()) if shapes == [type_.shape for type_ in given if isinstance(type_, Tensor)] else None


def _alike(wanted: Any, given: Any) -> bool:
    if type(wanted) is not type(given) or not isinstance(wanted, Tensor):
        return bool(wanted == given)
    return wanted.dtype == given.dtype and wanted.ndim == given.ndim
