"""What leaves Python: the captured program of one kind of call, closed over the arrays of its model."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ..ir.dims import as_multiple
from ..ir.graph import Graph, Value
from ..ir.size_symbols import at_most
from ..ir.size_texts import in_words
from ..ir.types import Tensor


@dataclass(frozen=True, eq=False)
class Argument:
    """An array of the caller's.

    value: the input of the graph.  name: that of the parameter of the Python function, or that of its `InputSpec`; for an
    array in a list or dict, followed by its index or key: ``xs_0``, ``batch_image``.
    size_names: the names that its `InputSpec` gives to axes.
    """

    value: Value
    name: str
    size_names: Tuple[Optional[str], ...] = ()


@dataclass(frozen=True, eq=False)
class Parameter:
    """An array that belongs to the model, or to a closure or a global of it: a constant of what is exported.

    value: the input of the graph.  name: in a Link, the path of `Link.namedparams` without the first slash: ``l1/W``.
    array: the contents, which never change; contiguous.
    """

    value: Value
    name: str
    array: np.ndarray


@dataclass(frozen=True, eq=False)
class Result:
    """An array that comes back.  value: an output of the graph.  name: ``output``, ``output_0``, or the key of a dict."""

    value: Value
    name: str


@dataclass(frozen=True)
class FreeSize:
    """A size that calls choose.

    name: what users read: that of the `InputSpec`, or ``batch``, or the argument and its axis, ``x_1``.
    argument, axis: where a call has it.
    least, most: the smallest and the largest that the program is right for; None for no limit.
    factor: it is a multiple of this one.
    """

    name: str
    argument: int
    axis: int
    least: int
    factor: int
    most: Optional[int]

    def divided(self, text: str) -> str:
        """The number of its symbol, in C; ``text``: the expression for the size."""
        return text if self.factor == 1 else f"({text} / {self.factor})"

    @property
    def in_words(self) -> str:
        """Which sizes it may have: ``2 or more``."""
        return in_words(self.least, self.factor, self.most)


@dataclass(frozen=True, eq=False)
class ExportedProgram:
    """A graph without Python, and what its inputs and outputs are.

    graph: its inputs are those of ``arguments``, then those of ``parameters``; its outputs those of ``results``: one value may be
    several of them, and an input may be one.  sizes: by the symbols of ``ir.dims``.
    fixed: results that are no arrays but constants, by their names.
    """

    name: str
    graph: Graph
    arguments: Tuple[Argument, ...]
    parameters: Tuple[Parameter, ...]
    results: Tuple[Result, ...]
    sizes: Mapping[str, FreeSize]
    fixed: Mapping[str, Any]

    @property
    def inputs(self) -> Tuple[Any, ...]:
        """The arguments and the parameters."""
        return (*self.arguments, *self.parameters)

    def sizes_of(self, arguments: Sequence[Argument]) -> Dict[str, FreeSize]:
        """The free sizes of some of the arguments, and where each stands among these."""
        found: Dict[str, FreeSize] = {}
        for symbol, place in free_sizes(arguments, lambda symbol: 1).items():
            size = self.sizes[symbol]
            found[symbol] = replace(place, name=size.name, least=size.least // size.factor * place.factor)
        return found


def free_sizes(arguments: Sequence[Argument], least: Callable[[str], int]) -> Dict[str, FreeSize]:
    """Where each size that is free stands among the arguments, and what it is called; least: gives the smallest of a symbol."""
    found: Dict[str, FreeSize] = {}
    names: set = set()
    for number, argument in enumerate(arguments):
        shape = argument.value.type.shape if isinstance(argument.value.type, Tensor) else ()
        for axis, size in enumerate(shape):
            symbol, factor = as_multiple(size) or ("", 1)
            if symbol and symbol not in found:
                given = argument.size_names[axis] if axis < len(argument.size_names) else None
                name = given or ("batch" if axis == 0 and "batch" not in names else f"{argument.name}_{axis}")
                names.add(name)
                most = at_most(symbol)
                found[symbol] = FreeSize(name, number, axis, factor * least(symbol), factor, most and factor * most)
    return found


def unique(names: Iterable[str], taken: Optional[set] = None) -> List[str]:
    """The names, each told from those before it by a number where that is needed."""
    found: List[str] = []
    taken = set() if taken is None else taken
    for name in names:
        free = next(option for option in _numbered(name) if option not in taken)
        taken.add(free)
        found.append(free)
    return found


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 1
    while True:
        yield f"{name}_{number}"
        number += 1
