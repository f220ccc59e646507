"""The guards of a program as lines of code: paths to values, and what must hold at their ends."""
from __future__ import annotations

import abc
import functools
import itertools
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

import chainer
import numpy as np

from ..ir.devices import is_gpu, number_of
from ..ir.dims import Size, as_multiple
from ..ir.size_symbols import at_least, at_most, rest_of
from ..ir.size_texts import divided_text
from ..lowering.opaque import relied_on
from ..native import kept
from ..pyast.loader import compile_text
from ..record.guards import ExpressionMatch, Guard
from ..record.outcome import Outcome
from ..record.paths import Argument, Constant, Keyword, RuleState, Source
from ..record.text import commas
from ..runtime import array_writes, definitions, guard_tests
from ..runtime.devices import array_type, current_device
from ..runtime.guard_tests import MadeLater, OnceThen, exact, is_empty, outside
from ..runtime.program import GUARD_ERRORS, MISS
from ..runtime.settings import settings_differ, settings_of
from . import hotpath
from .guard_reading import reader
from .guard_table import Table, divided
from .numbers import checked_together

_serial = itertools.count()
_FEW = 6                    # guards that are as fast in Python

_LITERALS = (type(None), bool, int, str)
_fits_in_python = guard_tests.fits


class Guards:
    """Writes the guards of one outcome; `lines` are the lines so far, ``namespace`` is what they refer to."""

    def __init__(self, outcome: Outcome):
        self.outcome = outcome
        self.namespace: Dict[str, Any] = {
            "MISS": MISS, "GUARD_ERRORS": GUARD_ERRORS, "ndarray": np.ndarray, "is_empty": is_empty, "exact": exact,
            "settings_differ": settings_differ, "outside": outside, "check": guard_tests.check, "distinct": guard_tests.distinct,
            "unchanged": definitions.unchanged, "overlap": array_writes.overlap, "get_cache_token": abc.get_cache_token,
            "global_config": chainer.global_config, "local_config": chainer.config._local, "current_device": current_device,
            "function_hooks": chainer.get_function_hooks, "link_hooks": chainer._get_link_hooks}
        self.namespace.update(outcome.bound)
        self.names: Dict[Source, str] = {}
        self.lines: List[str] = []
        self.numbers = {source: text for text, source in outcome.named}
        self.arrays: Dict[Source, str] = {}
        self.sizes: Set[str] = set()
        self._is_asked = False
        self._table: Optional[Table] = None
        self._inside: Sequence[Guard] = ()
        self._table_at = 0
        self._wanted: Dict[str, Tuple[int, Optional[Source]]] = {}
        self.may_be_new = ""
        self._waiting: Optional[List[Tuple[str, Tuple[bytes, np.dtype]]]] = None    # arrays that `fits` is to be asked for

    # --- paths ------------------------------------------------------------------------------------------------------

    def constant(self, value: Any, hint: str = "k") -> str:
        """Text for an object: a literal, or a name bound to it."""
        if type(value) in _LITERALS and value == value:
            return repr(value)
        return self.bound(value, hint)

    def bound(self, value: Any, hint: str = "k") -> str:
        """A name bound to this very object."""
        name = f"{hint}{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def path(self, source: Source) -> str:
        """The name of the value at the end of a path; reads it first where needed."""
        if source in self.names:
            return self.names[source]
        place = None if self._table is None or isinstance(source, Constant) else self._table.places.get(source)
        if place is not None:
            self.names[source] = self._want(self._name(source), place, source)
            return self.names[source]
        text = name = source.text(self)
        if not isinstance(source, Constant):
            name = self._name(source)
            self.lines.append(f"{name} = {text}")
        self.names[source] = name
        return name

    def _name(self, source: Source) -> str:
        return self.numbers.get(source) or source.variable()

    def read(self) -> Set[Source]:
        """The paths to values that are there once the guards hold."""
        return {*self.names, *(() if self._table is None else self._table.places)}

    # --- the table --------------------------------------------------------------------------------------------------

    def _in_table(self) -> Tuple[Guard, ...]:
        """Put guards into a table, if they are many: the others.  `ask_table` asks it, once all names are known."""
        table, inside, others = divided(self.outcome.guards)
        if len(inside) < _FEW:
            return self.outcome.guards
        self._table, self._inside, self._table_at = table, inside, len(self.lines)
        for source, place in table.arrays.items():
            self.arrays[source] = self._want(f"{self._name(source)}_array", place, source)
        states = [place for source, place in table.places.items() if isinstance(source, RuleState)]
        if states and None not in states:               # native code makes no states: it leaves that to the guards in Python
            self.may_be_new = "made_states"
            self._wanted[self.may_be_new] = table.give("constant", table.constant(False)), None
        for source in self.numbers:                     # expressions have their names
            if table.places.get(source) is not None:
                self.path(source)
        return tuple(others)

    def _want(self, name: str, place: int, source: Source) -> str:
        """A name for a value that the table gives."""
        self._wanted[name] = place, source
        return name

    def ask_table(self, lines: List[str]) -> None:
        """Add to the lines of `guards` those that ask the table and name what it gives."""
        if self._table is not None:
            places = [place for place, _ in self._wanted.values()]
            python = MadeLater(functools.partial(_in_python, self.outcome, self._inside, self._wanted))
            values = [(source, source is not None and self.arrays.get(source) == name)
                      for name, (_, source) in self._wanted.items()]
            table = self.constant(self._table.finished(places, OnceThen(reader(self._inside, values), python)), "table")
            names = commas(list(self._wanted)) or "_"
            lines[self._table_at:self._table_at] = [
                f"found = check({table}, args, kwargs)", f"if found is MISS: {self.fail()}", f"{names} = found"]

    # --- guards -----------------------------------------------------------------------------------------------------

    def array_differs(self, name: str, shape: Tuple[Size, ...], dtype: np.dtype, is_argument: bool, device: str) -> Optional[str]:
        """The condition under which an array has another shape, dtype or device; None where it is left to `_ask_for_arrays`."""
        if self._waiting is not None and not is_gpu(device) and all(type(n) is int for n in shape):
            if is_argument and shape and not self._is_asked:       # the size of a batch, which differs most often, at once
                self._is_asked = True
                self.lines.append(f"if {name}.shape[0] != {shape[0]}: {self.fail()}")
            self._waiting.append((name, (np.array(shape, np.int64).tobytes(), dtype)))
            return None
        wanted = f"{name}.shape != {shape}" if all(type(n) is int for n in shape) else \
            " or ".join([f"{name}.ndim != {len(shape)}"] + [self._size_guard(f"{name}.shape[{i}]", n) for i, n in enumerate(shape)])
        kind = self.constant(array_type(device), "array_type") if is_gpu(device) else "ndarray"
        elsewhere = f" or {name}.data.device_id != {number_of(device)}" if is_gpu(device) else ""
        return f"type({name}) is not {kind} or {wanted} or {name}.dtype != {self.constant(dtype, 'dtype')}{elsewhere}"

    def _size_guard(self, text: str, size: Size) -> str:
        """The condition under which a size differs; a free one gets its name where it is met first, and is not too small."""
        symbol, factor = as_multiple(size) or ("", 1)
        if not symbol or symbol in self.sizes:
            return f"{text} != {size}"
        self.sizes.add(symbol)
        is_no_multiple = "" if factor == 1 else f"{text} % {factor} or "
        is_too_large = "" if at_most(symbol) is None else f" or {symbol} > {at_most(symbol)}"
        rest, step = rest_of(symbol)
        has_no_rest = f" or {symbol} % {step} < {rest}" if rest else ""
        return f"{is_no_multiple}({symbol} := {divided_text(text, factor)}) < {at_least(symbol)}{is_too_large}{has_no_rest}"

    def fail(self) -> str:
        """The statement where a guard fails."""
        return "return MISS"

    def guards(self, diagnose: bool = False) -> List[str]:
        """All guards as lines, in the order in which they were relied on."""
        self._calling_conditions()
        is_there = guard_tests.fits is not _fits_in_python
        is_native = not diagnose and (is_there or hotpath.is_coming())      # then the entry gets a native `check` later
        self._waiting = [] if is_native and is_there else None
        expressions: List[str] = []
        for index, guard in enumerate(self._in_table() if is_native else self.outcome.guards):
            if not guard.before_arrays:
                self._ask_for_arrays()
            if diagnose:
                self.fail = lambda index=index: f"failed.append({index}); return failed"   # type: ignore[method-assign]
            condition = guard.fails(self)
            if condition is None:
                continue
            if isinstance(guard, ExpressionMatch) and not diagnose:
                expressions.append(condition)
                continue
            soft = diagnose and guard.is_soft
            self.lines.append(f"if {condition}: {f'failed.append({index})' if soft else self.fail()}")
        self._ask_for_arrays()
        self.lines += checked_together(expressions, self.fail(), self.outcome)
        return self.lines

    def _ask_for_arrays(self) -> None:
        """One call for all arrays so far, which takes less time than a comparison for each."""
        if self._waiting:
            expected = self.constant(tuple([wanted for _, wanted in self._waiting]), "expected")
            names = ", ".join([name for name, _ in self._waiting])
            self.lines.append(f"if not {self.constant(guard_tests.fits, 'fits')}({expected}, {names}): {self.fail()}")
            self._waiting.clear()

    def _calling_conditions(self) -> None:
        """The first line of every entry: how many arguments there are, Chainer's configuration, and no hooks."""
        roots = {g.source for g in self.outcome.guards if g.source is not None and g.source.parent is None}
        positions = sum(isinstance(source, Argument) for source in roots)
        keywords = sum(isinstance(source, Keyword) for source in roots)
        order = self.constant(self.outcome.keywords)
        checks = [f"len(args) != {positions}",
                  "kwargs" if not keywords else "len(kwargs) != 1" if keywords == 1 else f"tuple(kwargs) != {order}",
                  *[self._settings_guard(f"{name}.__dict__", settings_of(entries)) for name, entries in
                    (("global_config", chainer.global_config.__dict__), ("local_config", self.outcome.config))],
                  *[f"{self.constant(call, 'call')}.failed" for call in relied_on(self.outcome.graph)],
                  *([f"current_device() != {self.outcome.current}"] if self.outcome.current >= 0 else []),
                  "function_hooks()" if chainer._get_link_hooks() else "function_hooks() or link_hooks()"]
        self.lines.append(f"if {' or '.join(checks)}: {self.fail()}")

    def _settings_guard(self, text: str, expected: Dict[str, Any]) -> str:
        """Compared whole first: mostly there are no entries but Chainer's.  ``mixed16`` equals float16, and is another one."""
        name = self.constant(expected, "config")
        mixed = f" or {text}['dtype'] is not {self.constant(expected['dtype'], 'dtype')}" if "dtype" in expected else ""
        return f"{text} != {name} and settings_differ({text}, {name}){mixed}"


def _in_python(outcome: Outcome, guards: Sequence[Guard], wanted: Mapping[str, Tuple[int, Optional[Source]]]) -> Any:
    """``python`` of a `GuardTable`: the same guards as generated code.

    What no path leads to is whether this function gave the values, which may have made states of rules.
    """
    writer = Guards(outcome)
    for guard in guards:
        writer.lines.append(f"if {guard.fails(writer)}: return MISS")
    names = ["True" if source is None else writer.arrays[source] if name == writer.arrays.get(source) else writer.path(source)
             for name, (_, source) in wanted.items()]
    lines = ["try:", *[f"    {line}" for line in writer.lines], "except GUARD_ERRORS:", "    return MISS",
             f"return ({commas(names)})"]
    text = "def check(args, kwargs):\n" + "".join(f"    {line}\n" for line in lines)
    return compile_text(text, f"<dy2static guards {next(_serial)}>", writer.namespace, keep=kept.code_of)["check"]


def compile_diagnosis(guards: Guards) -> Any:
    """``diagnose(args, kwargs)``: the indexes of the guards that fail; those after a broken path are not reached."""
    lines = ["failed = []", "try:"] + [f"    {line}" for line in guards.guards(diagnose=True)]
    lines += ["except GUARD_ERRORS:", "    failed.append(-1)", "return failed"]
    text = "def diagnose(args, kwargs):\n" + "".join(f"    {line}\n" for line in lines).replace("return MISS", "return [-1]")
    return compile_text(text, f"<dy2static guards {next(_serial)}>", guards.namespace)["diagnose"]
