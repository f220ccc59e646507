"""Loop nests that differ in nothing but their arrays: the first is scheduled and written, the others call its function.

The steps of an unrolled loop are such nests.  What their text depends on is their *form*, in which arrays are numbers.
"""
from __future__ import annotations

from typing import Any, Dict, Hashable, List, NamedTuple, Optional, Tuple

from ...ir.graph import Node, Value
from ...passes.cleanup.cse import frozen
from ..loops.groups import Group
from .function import FunctionEmitter
from .outline import Call


class Form(NamedTuple):
    """What two nests with the same text have in common, and what is their own.

    key: the first.  values: the values, by their numbers.  first: the first element that is read of each value from outside; places
    are compared from there on, since functions are given pointers to it.
    """

    key: Hashable
    values: List[Value]
    first: Dict[int, int]


class _Written(NamedTuple):
    """A call of the function of a nest.  named: the numbers of the values whose names it asks for, in that order.

    types: of these names.  arguments: the numbers of the values that it is given.
    """

    call: Call
    named: Tuple[int, ...]
    types: Tuple[str, ...]
    arguments: Tuple[int, ...]


class AlikeNests:
    """The nests of one function of C; forms are known to all functions of a text."""

    def __init__(self, out: FunctionEmitter):
        self._out = out
        self._written: Dict[Hashable, _Written] = out.parts.alike

    def again(self, form: Form) -> bool:
        """Write the call of a nest, if one of the same form has been written."""
        known, out, values = self._written.get(form.key), self._out, form.values
        if known is None:
            return False
        names = [out.name(values[number]) for number in known.named]
        if tuple([out.names.types[name] for name in names]) != known.types:
            return False
        named = dict(zip(known.named, names))
        arguments = tuple([(named[number], form.first.get(number, 0)) for number in known.arguments])
        out.line(out.parts.call_again(known.call._replace(arguments=arguments)))
        return True

    def note(self, form: Form, call: str) -> None:
        """A nest of this form has been written as this call, and since ``out.named`` was emptied, it has asked for these names."""
        out, made = self._out, self._out.parts.calls[call]
        numbers = {value: number for number, value in enumerate(form.values)}
        if not all([value in numbers for value in out.named]):
            return
        by_name = {name: numbers[value] for value, name in out.named.items()}
        if len(by_name) == len(out.named) and all([name in by_name and behind == form.first.get(by_name[name], 0)
                                                   for name, behind in made.arguments]):
            self._written[form.key] = _Written(
                made, tuple(by_name.values()), tuple([out.names.types[name] for name in by_name]),
                tuple([by_name[name] for name, _ in made.arguments]))


def form_of(group: Group, out: FunctionEmitter) -> Optional[Form]:
    """The form of a nest; None where its text depends on more: on sizes or indices that only a run knows, or on single numbers."""
    if not group.shape:
        return None
    own, numbers, first = group.values(), {}, {}            # type: Any, Dict[Value, int], Dict[int, int]
    read: List[Tuple[Any, ...]] = []                        # per operand: its number, and the first element where that counts
    rows: List[Hashable] = []
    for node in group.nodes:
        (value,) = node.outputs
        if not value.ndim or not _is_known(value.shape):
            return None
        for operand in node.inputs:
            place = out.place(operand)
            base = place.base
            if place.terms or not _is_known((*place.shape, *place.strides, place.offset)):
                return None
            if base not in own and not base.ndim:
                if base not in out.places.constants:
                    return None
                read.append((-1, frozen(out.places.constants[base])))
            else:
                number = numbers.setdefault(base, len(numbers))
                if base not in own:
                    first[number] = min(first.get(number, place.offset), place.offset)
                read.append((number, place.offset))
            rows.append((operand.shape, place.shape, place.strides, base.shape, base.dtype.str))
        rows.append(_made(group, node, out.stored(value), numbers.setdefault(value, len(numbers))))
    places = tuple([(number, at if number < 0 else at - first.get(number, 0)) for number, at in read])
    key = group.shape, group.split, places, tuple(rows)
    try:
        hash(key)
    except TypeError:
        return None
    return Form(key, list(numbers), first)


def _made(group: Group, node: Node, is_stored: bool, number: int) -> Hashable:
    """What a node of a group is, without its operands."""
    (value,) = node.outputs
    kind = 0 if value in group.elements else 1 if value in group.rows else 2
    attrs = tuple([(name, frozen(attr)) for name, attr in node.attrs.items()])
    return (id(node.op), len(node.inputs), attrs, number, value.shape, value.dtype.str, is_stored, kind, group.sweep[value])


def _is_known(sizes: Tuple[Any, ...]) -> bool:
    return all([type(size) is int for size in sizes])
