"""``is`` of values that stand for others."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from ..heap.objects import real_class
from ..record.guards import DistinctObjects
from ..record.paths import Source
from ..symbolic.array_or_variable import ArrayOrVariable
from ..symbolic.host_objects import BoundHostMethod, SymbolicObject
from ..symbolic.known_texts import SymbolicText
from ..symbolic.sizes import Size
from ..symbolic.values import SymbolicArray, SymbolicScalar, SymbolicVariable

if TYPE_CHECKING:
    from .protocols import Capture


#: What may be one object with a number.
_NUMBERS = (int, float, SymbolicScalar, Size)


#: Of which there may be several objects that are equal.
_EQUAL = (int, float, complex, str, bytes)

#: Numbers of which Python has one object only.
_ONLY_ONE = range(-5, 257)


def identical(capture: Capture, first: Any, second: Any) -> Any:
    """``first is second`` of what they stand for."""
    for item, other in ((first, second), (second, first)):
        kind = type(item)
        if kind is ArrayOrVariable and other is None:
            return False
        if kind is SymbolicScalar and item.text is None and first is not second:
            known = _is_constant(capture, item, other)
            if known is not None:
                return known
        if first is not second and (
                kind is BoundHostMethod or kind is SymbolicObject and item.real is SymbolicObject.Missing
                or kind is SymbolicScalar and item.text is None and isinstance(other, (bool, int, float))):
            capture.abort("`is` of a value that is known at run time only", of_host=True)
    noted = [capture.staging.replaced.holding(item) for item in (first, second)]
    if first is not second and None not in noted:
        capture.abort("`is` compares objects that a loop on array values replaces", because=noted[1])
    if type(first) is SymbolicArray and type(second) is SymbolicArray and first is not second:
        return capture.array_writes.layouts.is_one(first, second)
    if isinstance(first, SymbolicVariable) and isinstance(second, SymbolicVariable) and first is not second and \
            any("choice" in v.__dict__ or "origins" in v.__dict__ for v in (first, second)):
        decided = first if "decision" in first.__dict__ else second
        capture.abort("`is` compares Variables that depend on a decision on array values", because=decided)
    if first is not second and any(type(x) is SymbolicScalar and x.text is None for x in (first, second)):
        return False                                # a number, or a value that is not symbolic
    if first is second and type(first) not in _EQUAL:
        return True
    is_one = capture.heap.is_one(first, second)
    if is_one is not None:
        return is_one
    if SymbolicText in (type(first), type(second)) and not all(isinstance(x, (str, bytes)) for x in (first, second)):
        return False
    if SymbolicScalar in (type(first), type(second)) and not all(type(x) in _NUMBERS for x in (first, second)):
        return False                                # the type is known: the number may be any
    varies = any(type(x) in (SymbolicScalar, SymbolicText) for x in (first, second))
    first, second = [x.fix() if type(x) in (SymbolicScalar, SymbolicText) else real_class(x) for x in (first, second)]
    if type(first) is type(second) and type(first) in _EQUAL and first == second and first not in _ONLY_ONE:
        if varies:
            capture.abort("`is` compares equal numbers or strings that differ from call to call", hint="compare them by `==`")
        capture.heap.identify(first)
        capture.heap.identify(second)
    sources = [_source_of(capture, item) for item in (first, second)]
    if first is not second and None not in sources:
        capture.heap.guard(DistinctObjects(tuple(sources)))
    return first is second


def _source_of(capture: Capture, item: Any) -> Optional[Source]:
    """The path of an object of the caller's, of a kind that is not guarded to differ from all others anyway."""
    return capture.inputs.source_of(item.value) if type(item) is SymbolicObject else capture.heap.origin(item)


def _is_constant(capture: Capture, number: SymbolicScalar, other: Any) -> Any:
    """Whether a number of the graph is an object that is no such number; None where Python leaves that open."""
    capture.staging.need_exact(number)
    if type(other) is bool and number.kind == "py_bool":
        truth = capture.staging.truth(number)
        return truth if other else capture.staging.not_(truth)
    return None if type(other) in (SymbolicScalar, number.python_type) else False
