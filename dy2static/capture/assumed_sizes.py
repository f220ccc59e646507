"""Numbers that the run finds and that become sizes, which must be those of other arrays.

An example is ``np.zeros(int(graphs.max()) + 1)`` beside an array with a label for each graph.  A capture that stopped because the
sizes need not match is made again with the number taken to be the other size.  The run checks that.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, Mapping, Optional

from ..heap.locations import user_location
from ..ir.dims import Dim
from ..ir.graph import Value
from ..ir.types import Scalar
from ..lowering.checked_range import zero
from ..runtime.checked_range import SEEN
from ..symbolic.sizes import Size
from ..symbolic.values import SymbolicArray, SymbolicScalar

if TYPE_CHECKING:
    from .protocols import Capture


class AssumedSizes:
    """Of a `Capture`: which numbers are taken to be which sizes.

    sizes: of the calls in which a number decides a size, by their places in the user's code.
    """

    def __init__(self, capture: Capture):
        self.capture = capture
        self.sizes: Mapping[str, Any] = {}
        self._places: Dict[Dim, str] = {}
        self._known: Dict[Optional[Value], Any] = {}

    def decided(self, name: str, size: Dim) -> None:
        """A number decides a size in this call."""
        self._places[size] = self._place(name)

    def with_more(self, assumed: Any) -> Optional[Mapping[str, Any]]:
        """The sizes for the next capture, of which one is assumed: what decided it, and what it is; None if it cannot be."""
        place = None if assumed is None else self._places.get(Dim(assumed[0]))
        return None if place is None or place in self.sizes or place in SEEN else {**self.sizes, place: assumed[1]}

    def applied(self, name: str, args: Any) -> Any:
        """The arguments of a call, with sizes for numbers that are taken to be such.

        Where the call is the first with a number, the run checks it there.
        """
        capture = self.capture
        if not self.sizes or capture.staging.depth or capture.staging.in_loop or capture.effects.is_protected():
            return args
        place, numbers = self._place(name), dict.fromkeys(_numbers_in(args))
        new = [value for value in numbers if value not in self._known and value not in capture.dimensions]
        if place in self.sizes and len(new) == 1:
            self._check(new[0], self.sizes[place], place)
            self._known[new[0]] = self.sizes[place]
        return self._with_sizes(args) if not self._known.keys().isdisjoint(numbers) else args

    def _check(self, number: Value, size: Any, place: str) -> None:
        """Let the run check that a number is a size."""
        capture, whole = self.capture, self.capture.wrap(number)
        if not isinstance(number.type, Scalar) or number.type.kind == "numpy":
            whole = capture.numpy.call(int, (whole,), {})
        more = whole - (Size(capture, size).number if isinstance(size, Dim) else size)
        capture.builder.add(zero, (more.value,), {"place": place})

    def _with_sizes(self, item: Any) -> Any:
        size = self._known.get(_number(item))
        if size is not None:
            dtype = item.dtype if type(item) is SymbolicArray else None
            return Size(self.capture, size, dtype) if isinstance(size, Dim) else size if dtype is None else dtype.type(size)
        return type(item)(map(self._with_sizes, item)) if type(item) in (tuple, list) else item

    def _place(self, name: str) -> str:
        return f"{user_location()} (a size in numpy {name})"


def _number(item: Any) -> Optional[Value]:
    """The value of a whole number, of Python's or NumPy's, that only the run knows; None for anything else."""
    if type(item) is SymbolicArray:
        return item.now() if item.is_scalar and item.dtype.kind in "iu" else None
    return item.value if type(item) is SymbolicScalar and item.text is None and item.kind == "py_int" else None


def _numbers_in(item: Any) -> Iterator[Value]:
    number = _number(item)
    if number is not None:
        yield number
    elif type(item) in (tuple, list):
        for part in item:
            yield from _numbers_in(part)
