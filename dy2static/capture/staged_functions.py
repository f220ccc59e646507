"""Converted functions bound to shadows of their globals, closure cells and defaults."""
from __future__ import annotations

import dis
import sys
import types
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Set, Tuple, Type

from ..control_flow.raising import GENERATOR
from ..heap import aliases
from ..heap.dict_shadows import ShadowDict
from ..heap.heap import Heap
from ..heap.ownership import is_library
from ..pyast.parser import RESERVED
from ..record.guards import CellEmpty, EqualsMatch
from ..record.paths import Attribute, CellContents, Constant, Source
from ..record.writes import DeleteCell, SetCell, Write
from ..runtime import dy, hooks
from ..symbolic.contents import contents_of
from ..symbolic.kinds import ABSENT
from ..symbolic.values import is_symbolic

if TYPE_CHECKING:
    from .protocols import Capture


class _Ended:
    """What converted code calls after its capture: generators end in silence, functions that are still held compute."""

    def __getattr__(self, name: str) -> Any:
        if sys._getframe(1).f_code.co_flags & GENERATOR:
            raise GeneratorExit
        return getattr(dy, name)


_ENDED = _Ended()


class StagedFunctions:
    """The converted functions of one capture.

    cells: the closure cells that they share with the user's.  has_generators: whether one of the user's is, or makes, a generator.
    """

    def __init__(self, capture: Capture):
        self.capture, self.has_generators = capture, False
        self.cells: Dict[int, ShadowCell] = {}
        self._staged: Dict[int, Tuple[types.FunctionType, types.FunctionType]] = {}
        self._globals: Dict[int, Any] = {}

    def end(self) -> None:
        """Let converted generators do nothing any more: one that is left runs its ``finally`` when it is collected."""
        for _, made in self._staged.values():
            for name, cell in zip(made.__code__.co_freevars, made.__closure__ or ()):
                if name == RESERVED:
                    cell.cell_contents = _ENDED

    def shadow_cells(self) -> List[ShadowCell]:
        """The closure cells that staged functions share with the user's."""
        return list(self.cells.values())

    def staged(self, function: types.FunctionType) -> types.FunctionType:
        """The converted form of a Python function, bound to shadows of its globals, cells and defaults."""
        known = self._staged.get(id(function))
        if known is None:
            known = self._staged[id(function)] = (function, self._instantiate(function))
        return known[1]

    def unstaged(self, made: types.FunctionType) -> Optional[types.FunctionType]:
        """The function of the user's that a converted one stands for; None for what is made during the capture."""
        return next((real for real, known in self._staged.values() if known is made), None)

    def real(self, function: Any) -> Any:
        """The function of the user's that a function stands for."""
        if isinstance(function, types.FunctionType) and function.__code__ in self.capture.calls.staged_codes:
            real = self.unstaged(function)
            if real is not None:
                return real
            self.capture.abort(f"the function {function.__name__}, which is made here, leaves the compiled function")
        if isinstance(function, types.MethodType) and is_symbolic(function.__self__):
            self.capture.abort("a method of a Variable or array leaves the compiled function")
        return function

    def staged_pairs(self) -> List[Tuple[types.FunctionType, types.FunctionType]]:
        """The functions of the user's that are converted, with their converted forms."""
        return list(self._staged.values())

    def _instantiate(self, function: types.FunctionType) -> types.FunctionType:
        loaded = hooks.convert(function)
        cells = {name: self._cell(cell) for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ())}
        space = self._shadow_globals(function.__globals__)
        if isinstance(space, ShadowDict):
            for name in unseen_globals(function.__code__):
                space.load(name)                        # Python reads or deletes it past the shadow
        made = loaded.instantiate(space, cells, dy, function)
        self.capture.calls.staged_codes.add(made.__code__)
        source = self.capture.heap.source(Constant, None, function)
        if not is_library(function.__module__ or ""):
            self.has_generators = self.has_generators or _makes_generators(function.__code__)
            self.capture.heap.definitions.add_function(function)
            self.capture.heap.objects.open_classes.runs(function.__code__)
            if function.__kwdefaults__:                 # a dict, in which items can be set
                defaults = self.capture.heap.source(Attribute, source, "__kwdefaults__")
                self.capture.heap.guard(EqualsMatch(defaults, dict(function.__kwdefaults__)))
        for name in ("__defaults__", "__kwdefaults__"):
            defaults = getattr(function, name)
            if defaults and not all(_is_atom(x) for x in (defaults.values() if isinstance(defaults, dict) else defaults)):
                shadow = self.capture.heap.shadow(defaults, self.capture.heap.source(Attribute, source, name))
                setattr(made, name, dict(shadow) if isinstance(shadow, dict) else shadow)
        return made

    def _shadow_globals(self, real: dict) -> ShadowDict:
        known = self._globals.get(id(real))
        if known is None:
            if is_library(real.get("__name__", "")):
                known = real
            else:
                known = aliases.of_module(self.capture.heap, real, self.capture.heap.source(Constant, None, real))
                own = {"__builtins__": self.capture.imports.builtins}
                if "__name__" in real:
                    own["__name__"] = real["__name__"]
                for name, value in own.items():         # Python reads these past any subclass of dict
                    dict.__setitem__(known, name, value)
                    known.loaded[name] = known.original[name] = value
            self._globals[id(real)] = known
        return known

    def _cell(self, cell: Any) -> Any:
        if id(cell) not in self.cells:
            self.cells[id(cell)] = ShadowCell(self.capture.heap, cell)
        return self.cells[id(cell)].shadow


class ShadowCell:
    """The shadow of a closure cell."""

    def __init__(self, heap: Heap, real: Any):
        self.real = real
        self.source = heap.source(Constant, None, real)
        self.shadow = types.CellType()
        contents = heap.source(CellContents, self.source)
        try:
            value = real.cell_contents
        except ValueError:
            heap.guard(CellEmpty(self.source))
        else:
            self.shadow.cell_contents = heap.shadow(value, contents)
        self.before = self.initial = contents_of(self.shadow)

    def changes(self) -> List[Tuple[Source, Type[Write], Any, Any]]:
        """The write to the cell since the last call, if any."""
        now = contents_of(self.shadow)
        if now is self.before:
            return []
        self.before = now
        return [(self.source, DeleteCell if now is ABSENT else SetCell, None, now)]


_UNSEEN = frozenset((dis.opmap["DELETE_GLOBAL"], dis.opmap["LOAD_NAME"]))


def unseen_globals(code: types.CodeType) -> Set[str]:
    """The global names that a function, or one inside it, deletes, and those that the body of a class may read."""
    found: Set[str] = set()
    if not _UNSEEN.isdisjoint(code.co_code[::2]):
        found = {step.argval for step in dis.get_instructions(code) if step.opcode in _UNSEEN}
    return found.union(*[unseen_globals(const) for const in code.co_consts if isinstance(const, types.CodeType)])


def _is_atom(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str, bytes)


def _makes_generators(code: types.CodeType) -> bool:
    """Whether code is that of a generator function, or makes one."""
    return bool(code.co_flags & GENERATOR) and code.co_name != "<genexpr>" or \
        any(_makes_generators(inner) for inner in code.co_consts if isinstance(inner, types.CodeType))
