"""Converted functions bound to shadows of their globals, closure cells and defaults."""
from __future__ import annotations

import dis
import types
from typing import Any, Callable, List, Optional, Set, Tuple

from ..runtime import dy, hooks
from ..symbolic.known_texts import SymbolicText
from ..symbolic.rollback import ABSENT, contents_of
from ..symbolic.values import BoundHostMethod, SymbolicArray, SymbolicObject, SymbolicScalar, SymbolicVariable
from ..world.objects import real_class
from ..world.shadows import ShadowDict
from ..world.sources import Source
from ..world.trust import is_library
from ..world.world import World


class StagedFunctions:
    """Of a `Capture`: what calls in converted code run."""

    def callee(self, function: Any) -> Callable:
        """What to call for ``function``: a staged form, a native call, or a host call."""
        self.check()
        return self.calls.callee(function)

    def decides(self, value: Any) -> bool:
        """Whether the truth of a value is known at run time only."""
        return type(value) is SymbolicArray and value.now() not in self.known or \
            type(value) is SymbolicScalar and value.text is None

    def shadow_cells(self) -> List[ShadowCell]:
        """The closure cells that staged functions share with the user's."""
        return list(self._cells.values())

    def identical(self, first: Any, second: Any) -> Any:
        """``first is second`` of what they stand for."""
        for item, other in ((first, second), (second, first)):
            kind = type(item)
            if kind is SymbolicScalar and item.text is None and first is not second:
                known = self._is_constant(item, other)
                if known is not None:
                    return known
            if first is not second and (
                    kind is BoundHostMethod or kind is SymbolicObject and item.real is SymbolicObject.Missing
                    or kind is SymbolicScalar and item.text is None and isinstance(other, (bool, int, float))):
                self.abort("`is` of a value that is known at run time only", of_host=True)
        noted = [self.staging.replaced.holding(item) for item in (first, second)]
        if first is not second and None not in noted:
            self.abort("`is` of objects that a loop on array values replaces", because=noted[1])
        if type(first) is SymbolicArray and type(second) is SymbolicArray and first is not second:
            self.abort("two arrays are compared by `is`")
        if isinstance(first, SymbolicVariable) and isinstance(second, SymbolicVariable) and first is not second and \
                any("choice" in v.__dict__ or "origins" in v.__dict__ for v in (first, second)):
            decided = first if "decision" in first.__dict__ else second
            self.abort("`is` of Variables that depend on a decision on array values", because=decided)
        if first is not second and any(type(x) is SymbolicScalar and x.text is None for x in (first, second)):
            return False                                # a number, and what is none
        if first is second:
            return True
        if SymbolicText in (type(first), type(second)) and not all(isinstance(x, (str, bytes)) for x in (first, second)):
            return False
        first, second = [x.fix() if type(x) in (SymbolicScalar, SymbolicText) else real_class(x) for x in (first, second)]
        return first is second

    def _is_constant(self, number: SymbolicScalar, other: Any) -> Any:
        """Whether a number of the graph is an object that is no such number; None where Python leaves that open."""
        self.staging.need_exact(number)
        if type(other) is bool and number.kind == "py_bool":
            truth = self.staging.truth(number)
            return truth if other else self.staging.not_(truth)
        return None if type(other) in (SymbolicScalar, number.python_type) else False

    def staged(self, function: types.FunctionType) -> types.FunctionType:
        """The converted form of a Python function, bound to shadows of its globals, cells and defaults."""
        known = self._staged.get(id(function))
        if known is None:
            known = self._staged[id(function)] = (function, self._instantiate(function))
        return known[1]

    def unstaged(self, made: types.FunctionType) -> Optional[types.FunctionType]:
        """The function of the user's that a converted one stands for; None for what is made during the capture."""
        return next((real for real, known in self._staged.values() if known is made), None)

    def staged_pairs(self) -> List[Tuple[types.FunctionType, types.FunctionType]]:
        """The functions of the user's that are converted, with their converted forms."""
        return list(self._staged.values())

    def _instantiate(self, function: types.FunctionType) -> types.FunctionType:
        loaded = hooks.convert(function)
        cells = {name: self._cell(cell, name) for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ())}
        space = self._shadow_globals(function.__globals__)
        if isinstance(space, ShadowDict):
            for name in deleted_globals(function.__code__):
                space.load(name)                        # Python deletes it past the shadow, which then knows what is missing
        made = loaded.instantiate(space, cells, dy, function)
        self.calls.staged_codes.add(made.__code__)
        source = self.world.source("const", None, function)
        if not is_library(function.__module__ or ""):
            self.world.definitions.add_function(function)
            if function.__kwdefaults__:                 # a dict, in which items can be set
                self.world.guard(self.world.source("attr", source, "__kwdefaults__"), "eq", dict(function.__kwdefaults__))
        for name in ("__defaults__", "__kwdefaults__"):
            defaults = getattr(function, name)
            if defaults and not all(_is_atom(x) for x in (defaults.values() if isinstance(defaults, dict) else defaults)):
                shadow = self.world.shadow(defaults, self.world.source("attr", source, name))
                setattr(made, name, dict(shadow) if isinstance(shadow, dict) else shadow)
        return made

    def _shadow_globals(self, real: dict) -> ShadowDict:
        known = self._globals.get(id(real))
        if known is None:
            if is_library(real.get("__name__", "")):
                known = real
            else:
                known = ShadowDict(self.world, real, self.world.source("const", None, real))
                own = {"__builtins__": self.imports.builtins, **({"__name__": real["__name__"]} if "__name__" in real else {})}
                for name, value in own.items():         # Python reads these past any subclass of dict
                    dict.__setitem__(known, name, value)
                    known.loaded[name] = known.original[name] = value
                self.world.containers.append(known)
            self._globals[id(real)] = known
        return known

    def _cell(self, cell: Any, name: str) -> Any:
        if id(cell) not in self._cells:
            self._cells[id(cell)] = ShadowCell(self.world, cell, name)
        return self._cells[id(cell)].shadow


class ShadowCell:
    """The shadow of a closure cell."""

    def __init__(self, world: World, real: Any, name: str):
        self.real = real
        self.source = world.source("const", None, real)
        self.shadow = types.CellType()
        contents = world.source("cell", self.source)
        try:
            value = real.cell_contents
        except ValueError:
            world.guard(self.source, "unbound")
        else:
            self.shadow.cell_contents = value if name == "__class__" else world.shadow(value, contents)
        self.before = self.initial = contents_of(self.shadow)

    def changes(self) -> List[Tuple[Source, str, Any, Any]]:
        """The write to the cell since the last call, if any."""
        now = contents_of(self.shadow)
        if now is self.before:
            return []
        self.before = now
        return [(self.source, "cell delete" if now is ABSENT else "cell set", None, now)]


def deleted_globals(code: types.CodeType) -> Set[str]:
    """The global names that a function, or one inside it, deletes."""
    found = {step.argval for step in dis.get_instructions(code) if step.opname == "DELETE_GLOBAL"}
    return found.union(*[deleted_globals(const) for const in code.co_consts if isinstance(const, types.CodeType)])


def _is_atom(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str, bytes)
