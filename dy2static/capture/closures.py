"""Functions that the user's code makes, and returns or stores: every run makes them anew, with cells of its own."""
from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Optional, Tuple

from ..record.builds import Build, Call, Const
from ..runtime.unbound import Undefined
from ..symbolic.contents import contents_of
from ..symbolic.kinds import ABSENT
from ..symbolic.values import Maybe

if TYPE_CHECKING:
    from .protocols import Capture

#: Stands for a cell that holds the function itself.
ITSELF = object()


class MadeFunctions:
    """The functions made during one capture that leave it.

    build: of what is in their cells.
    """

    def __init__(self, capture: Capture, build: Callable[[Any], Build]):
        self.capture, self.build = capture, build
        self._cells: Dict[int, Tuple[Any, Any, Build]] = {}
        self._own: Dict[int, Any] = {}                  # cells that hold the function they belong to

    def built(self, function: types.FunctionType) -> Optional[Build]:
        """How to make a function; None where it would not be the one that eager code makes."""
        found = [(real, code, name) for real, made in self.capture.functions.staged_pairs()
                 for code, name in _codes_within(real.__code__, real.__qualname__)
                 if any(function.__code__ is own for own, _ in _codes_within(made.__code__, ""))
                 and (code.co_name, code.co_firstlineno) == (function.__code__.co_name, function.__code__.co_firstlineno)]
        if len({id(code) for _, code, _ in found}) > 1:
            found = [item for item in found if _start(item[1]) is not None and _start(item[1]) == _start(function.__code__)]
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        if len({id(code) for _, code, _ in found}) != 1 or function.__dict__:
            return None
        real, code, name = found[0]
        if "__class__" in code.co_freevars or not cells.keys() >= set(code.co_freevars) or _parameters(code) != _parameters(
                function.__code__):
            return None
        parts = [self._cell(cells[free], function) for free in code.co_freevars]
        rest = [self.build(part) for part in (function.__defaults__, function.__kwdefaults__, dict(function.__annotations__))]
        return Call(functools.partial(make_function, code, real.__globals__, name), (*rest, *parts))

    def _cell(self, cell: Any, function: types.FunctionType) -> Build:
        for own in self.capture.functions.shadow_cells():
            if own.shadow is cell:
                return Const(own.real)
        if contents_of(cell) is function and id(cell) not in self._cells and id(cell) not in self._own:
            self._own[id(cell)] = cell
            return Const(ITSELF)
        if id(cell) in self._own:
            self.capture.abort("a function that calls itself leaves the compiled function with another one that calls it")
        if id(cell) not in self._cells:
            contents = contents_of(cell)
            if type(contents) is Maybe:
                self.capture.abort("a function that is made here leaves the compiled function with a name that may be unbound")
            parts = () if contents is ABSENT or type(contents) is Undefined else (self.build(contents),)
            self._cells[id(cell)] = cell, contents, Call(types.CellType, parts)
        return self._cells[id(cell)][2]

    def check(self) -> None:
        """Stop if what is in a cell was changed since it was built."""
        if any(contents_of(cell) is not contents for cell, contents, _ in self._cells.values()):
            self.capture.abort("a name of a function that leaves the compiled function is changed later")


def _codes_within(code: types.CodeType, name: str) -> Iterator[Tuple[types.CodeType, str]]:
    """The functions that code makes, with their qualified names."""
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            inner = f"{name}.<locals>.{const.co_name}"
            yield const, inner
            yield from _codes_within(const, inner)


def _start(code: types.CodeType) -> Optional[Tuple[int, int]]:
    """Line and column where the body of a function begins; None where Python does not know columns."""
    positions = getattr(code, "co_positions", tuple)()
    return min(((line, column) for line, _, column, _ in positions if line is not None and column), default=None)


def _parameters(code: types.CodeType) -> Tuple:
    count = code.co_argcount + code.co_kwonlyargcount
    return code.co_argcount, code.co_posonlyargcount, code.co_varnames[:count], code.co_flags & 0x2c


def make_function(code: types.CodeType, globals: dict, name: str, defaults: Optional[Tuple], keywords: Optional[Dict[str, Any]],
                  annotations: Dict[str, Any], *cells: Any) -> types.FunctionType:
    """A function of the user's code."""
    own = [types.CellType() if cell is ITSELF else cell for cell in cells]
    made = types.FunctionType(code, globals, code.co_name, defaults, tuple(own))
    for cell, given in zip(own, cells):
        if given is ITSELF:
            cell.cell_contents = made
    made.__kwdefaults__ = keywords
    if annotations:
        made.__annotations__ = annotations
    made.__qualname__ = name
    return made
