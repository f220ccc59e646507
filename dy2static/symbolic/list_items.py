"""What is known of the items of a list whose length only the run knows."""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from ..capture_context import CaptureContext
from ..ir.dims import Size, equal
from ..ir.graph import Value
from ..ir.op import OPS
from ..ir.size_bounds import is_positive, not_below
from ..ir.types import List, Tensor, Type
from . import sizes
from .kinds import describe, number_kind
from .list_lengths import END, Length, is_end
from .values import SymbolicArray, SymbolicScalar, SymbolicVariable

#: The kinds of items that are Python's numbers.
KINDS = {bool: "py_bool", int: "py_int", float: "py_float"}

#: The first place that is too far, of those that may not be there: a `for` over an object without ``__iter__`` reads on until
#: IndexError, which only a run raises.
_FARTHEST = 1000


class Items:
    """The contents of a list of which the length is not known: a value of the graph, and what its items are.

    kind: "variable", "array", or that of Python numbers.  requires_grad, connected: of some item.  uncertain: items
    differ in that.  origins: Variables made in the function that are in the list.  is_new: there are no others.
    has_leaves: some require a gradient and have no creator.  count: the number of items, as a `Length` and how many more.
    arrays: the array that NumPy makes of these items, by the text of its dtype (None where NumPy chooses); None where it is not
    known without looking at each of them.
    """

    arrays: Optional[Callable[[Optional[str]], Any]] = None

    def __init__(self, capture: CaptureContext, value: Value, kind: str, requires_grad: bool = False, connected: bool = False,
                 uncertain: bool = False, origins: Optional[Dict[int, Any]] = None, is_new: bool = True, has_leaves: bool = False):
        self.capture, self.value, self.kind = capture, value, kind
        self.requires_grad, self.connected, self.uncertain = requires_grad, connected, uncertain
        self.origins, self.is_new, self.has_leaves = dict(origins or {}), is_new, has_leaves
        self.decision = capture.staging.path.decision
        self.count: Tuple[Length, int] = (Length(), 0)

    @property
    def elem(self) -> Type:
        """The type of one item."""
        return self.value.type.elem

    def replaced(self, value: Value, **changes: Any) -> "Items":
        """Items like these with another value."""
        names = ("requires_grad", "connected", "uncertain", "origins", "is_new", "has_leaves")
        parts = {name: getattr(self, name) for name in names}
        made = Items(self.capture, value, self.kind, **{**parts, **changes})
        made.decision = self.decision or made.decision
        return made

    def counted(self, length: Length, more: int) -> "Items":
        """These items, of which it is now known how many they are."""
        self.count = length, more
        return self

    def joined(self, other: "Items", value: Value) -> "Items":
        """The items of this list or of the other one, or of both."""
        differ = self.requires_grad != other.requires_grad
        return self.replaced(value, requires_grad=self.requires_grad or other.requires_grad,
                             connected=self.connected or other.connected,
                             uncertain=self.uncertain or other.uncertain or differ,
                             origins={**self.origins, **other.origins}, is_new=self.is_new and other.is_new,
                             has_leaves=self.has_leaves or other.has_leaves)

    @property
    def size(self) -> Optional[Size]:
        """How many items there are, by the sizes of arrays; None where that is not known."""
        length, more = self.count
        return None if length.size is None else length.size + more

    @property
    def is_sure(self) -> bool:
        """Whether there is certainly an item."""
        return self.count[1] > 0 or self.size is not None and is_positive(self.size)

    @property
    def length(self) -> SymbolicScalar:
        """The number of items, a number of the graph."""
        length, more = self.count
        numbers = length.numbers.setdefault(more, [])
        value = next((number for number in numbers if _is_there(self.capture.builder, number)), None)
        if value is None:                               # one for all lists of this length, so that it is decided on once
            value, = self.capture.builder.add(OPS["list_len"], (self.value,), {}, name="length")
            numbers.append(value)
        if self.size is not None:
            self.capture.dimensions[value] = self.size
        return self.capture.wrap(value)

    def item(self, index: Any) -> Any:
        """One item; a run raises IndexError where there is none."""
        capture = self.capture
        if number_kind(index) not in ("py_int", "py_bool"):
            capture.abort(f"a list whose length depends on array values is indexed by {describe(index)}")
        if not self._has(index):
            if type(index) is int and index >= _FARTHEST:
                capture.abort(f"a list whose length depends on array values is read at place {index}")
            capture.effects.store_writes()
        attrs = {"is_last": type(index) is int and index == -1}
        value, = capture.builder.add(OPS["list_get"], (self.value, number_value(capture, index)), attrs, name="item")
        below = capture.index_ranges.places.get(getattr(index, "value", None))
        if below is not None and self.size is not None and equal(self.size, below):
            capture.index_ranges.reaching.add(value)
        return self.wrapped(value)

    def _has(self, index: Any) -> bool:
        """Whether there is certainly an item at a place."""
        size = self.size
        if size is None:
            return type(index) is int and index in (0, -1) and self.is_sure
        if type(index) is int:
            return not_below(size, index + 1 if index >= 0 else -index)
        below = self.capture.index_ranges.places.get(getattr(index, "value", None))
        return below is not None and not_below(size, below)

    def _of_span(self, span: slice) -> "Items":
        """The items of a slice of the elements of arrays."""
        arrays = self.arrays
        assert arrays is not None

        def of_span(dtype: Optional[str]) -> Any:
            array = arrays(dtype)
            return None if array is None else array[span]
        return made_of(self.capture, of_span, self.elem)

    def part(self, span: slice) -> "Items":
        """The items of a slice."""
        if self.arrays is not None and all([x is None or type(x) in (int, sizes.Size) for x in (span.start, span.stop, span.step)]):
            return self._of_span(span)
        capture, step = self.capture, 1 if span.step is None else span.step
        if type(step) is not int or step == 0 or any(x is not None and number_kind(x) not in ("py_int", "py_bool")
                                                     for x in (span.start, span.stop)):
            capture.abort("a list whose length depends on array values is sliced by what is no whole number")
        ends = (0, END) if step > 0 else (END, -END)
        bounds = [number_value(capture, end if given is None else given) for given, end in zip((span.start, span.stop), ends)]
        is_whole = span.start is None and span.stop is None and abs(step) == 1
        attrs = {"step": step, "is_whole": is_whole}
        made = self.replaced(capture.builder.add(OPS["list_slice"], (self.value, *bounds), attrs, name="items")[0])
        if is_whole:
            return made.counted(*self.count)
        return made.counted(Length(), 1) if self.is_sure and is_end(span) else made

    def wrapped(self, value: Value) -> Any:
        """An item that is this value of the graph."""
        if self.kind not in ("variable", "array"):
            return self.capture.wrap(value)
        array = SymbolicArray(self.capture, value)
        array.shared = "kept"
        if self.kind == "array":
            return array
        made = SymbolicVariable(self.capture, array, self.requires_grad, self.connected)
        made.__dict__.update(origins=self.origins, uncertain=self.uncertain, decision=self.decision)
        if not self.is_new:                             # it may be a Variable that was there before
            made.__dict__["elsewhere"] = True
            self.capture.grad_state.join(made, (), known=False)
        return made


class WholeArrays(Items):
    """Arrays of the caller's, of which only the run knows how many there are: they are known as one array, not one by one.

    An item may be written, compared by `is`, and kept; it is the caller's own, and the array is a copy.
    """

    def __init__(self, capture: CaptureContext, elem: Type):
        self._elem = elem
        super().__init__(capture, Value(List(elem), "items"), "array")

    def _refuse(self) -> Any:
        return self.capture.abort("an item is read of a list of arrays whose length differs from call to call")

    @property
    def value(self) -> Value:                           # type: ignore[override]
        """There is none, as there is no item."""
        return self._refuse()                           # type: ignore[no-any-return]

    @value.setter
    def value(self, given: Value) -> None:
        """What a list of such items would be, of which only the type is known."""

    @property
    def elem(self) -> Type:
        return self._elem

    @property
    def length(self) -> Any:
        assert self.arrays is not None
        return self.arrays(None).shape[0].number

    def replaced(self, value: Value, **changes: Any) -> Items:
        return self._refuse()


def made_of(capture: CaptureContext, arrays: Callable[[Optional[str]], Any], elem: Type) -> Items:
    """The elements of an array along its first axis as items of a list.  arrays: as of `Items`.  elem: the type of one."""
    array = arrays(None)
    if isinstance(elem, Tensor):
        made: Items = WholeArrays(capture, elem)
    else:
        value, = capture.builder.add(OPS["list_numbers"], (array.now(),), {"elem": elem}, name="items")
        made = Items(capture, value, elem.kind if elem.kind != "numpy" else "array")    # type: ignore[attr-defined]
    made.arrays = arrays
    return made.counted(Length(array.shape[0]), 0)


def number_value(capture: CaptureContext, number: Any) -> Value:
    """A number as a value of the graph."""
    if type(number) is SymbolicScalar:
        return number.value
    return capture.builder.add(OPS["py_constant"], (), {"value": number}, name="number")[0]


#: The classes of what stands for all items of a list.
ITEMS = (Items, WholeArrays)


def _is_there(builder: Any, value: Value) -> bool:
    """Whether what is built, or what is around it, has computed a value by now."""
    while builder is not None and builder.producer(value) is None:
        builder = builder.outer
    return builder is not None
