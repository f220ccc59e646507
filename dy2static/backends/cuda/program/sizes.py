"""Sizes that only the run knows, on a device: numbers that launches are given when these sizes have theirs."""
from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Callable, Dict, Mapping, Tuple, Union

from ....ir.dims import Dim, evaluate, is_known


@dataclass(frozen=True, eq=False)
class Late:
    """A number that is computed from sizes when these are known.

    name: of the parameter of kernels that has it, which is its text.  function: computes it from the arguments.
    """

    name: str
    function: Callable[..., int]
    arguments: Tuple[Any, ...]

    def __str__(self) -> str:
        return self.name


#: What is a number at the latest when a function is launched.
Number = Union[int, Dim, Late]


def settled(number: Number) -> int:
    """A number that is known by now."""
    assert isinstance(number, int)
    return number


class Sizes:
    """The numbers of one call.  symbols: those of the symbols in sizes."""

    def __init__(self, symbols: Mapping[str, int]):
        self._symbols = symbols
        self._known: Dict[Any, int] = {}

    def of(self, number: Any) -> int:
        """What a number is."""
        if is_known(number):
            return int(number)
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = evaluate(number, self._symbols) if isinstance(number, Dim) else int(
                number.function(*map(self.of, number.arguments)))
        return found

    def all(self, item: Any) -> Any:
        """The same with each number as it is: of tuples and of frozen dataclasses, such as steps."""
        if isinstance(item, (Dim, Late)):
            return self.of(item)
        if type(item) is tuple:
            return tuple([self.all(part) for part in item])
        if not is_dataclass(item) or isinstance(item, type):
            return item
        found = {field.name: getattr(item, field.name) for field in fields(item)}
        changed = {name: new for name, old in found.items() if (new := self.all(old)) is not old}
        return replace(item, **changed) if changed else item


def product(*numbers: int) -> int:
    """The product of some numbers."""
    return math.prod(numbers)


def ceiling(number: int, by: int) -> int:
    """A number divided by another one, rounded up."""
    return -(-number // by)
