"""The guards of a program as lines of code: paths to values, and what must hold at their ends."""
from __future__ import annotations

import abc
import itertools
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import chainer
import numpy as np

from ..capture.index_ranges import outside
from ..ir.dims import Dim, Size, at_least
from ..lowering.opaque import relied_on
from ..pyast.loader import compile_text
from ..runtime import definitions
from ..runtime.definitions import Definitions
from ..runtime.program import GUARD_ERRORS, MISS
from ..runtime.reports import reports_plainly
from ..symbolic.writes import overlap
from ..world.outcome import Outcome
from ..world.settings import settings_differ, settings_of
from ..world.slots import SlotsView
from ..world.sources import Guard, Source

_serial = itertools.count()

_LITERALS = (type(None), bool, int, str)


def fits(expected: Sequence[Tuple[bytes, np.dtype]], *arrays: Any) -> bool:
    """Whether all these are arrays as expected: lengths of the axes, as int64 one after the other, and dtype."""
    return all([type(x) is np.ndarray and np.array(x.shape, np.int64).tobytes() == shape and x.dtype == dtype
                for (shape, dtype), x in zip(expected, arrays)])


#: Guards that can come before `fits` is asked for the arrays of earlier ones.
_ANY_ARRAY = frozenset(("type", "is", "eq", "len", "absent", "same", "distinct", "array", "variable",
                        "definitions"))
_fits_in_python, _unchanged_in_python = fits, definitions.unchanged


class Guards:
    """Writes the guards of one outcome; `lines` are the lines so far, ``namespace`` is what they refer to."""

    def __init__(self, outcome: Outcome):
        self.outcome = outcome
        self.namespace: Dict[str, Any] = {
            "MISS": MISS, "GUARD_ERRORS": GUARD_ERRORS, "ndarray": np.ndarray, "is_empty": _is_empty, "exact": exact,
            "settings_differ": settings_differ, "outside": outside, "unchanged": definitions.unchanged,
            "get_cache_token": abc.get_cache_token,
            "global_config": chainer.global_config, "local_config": chainer.config._local,
            "function_hooks": chainer.get_function_hooks, "link_hooks": chainer._get_link_hooks}
        self.namespace.update(outcome.bound)
        self.names: Dict[Source, str] = {}
        self.lines: List[str] = []
        self.numbers = {source: text for text, source in outcome.named}
        self.arrays: Dict[Source, str] = {}
        self.sizes: Set[Dim] = set()
        self._is_asked = False
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
        if source.kind == "const":
            text = self.constant(source.key, "real")
            self.names[source] = text
            return text
        text = self.step(source)
        name = self.numbers.get(source) or f"{_hint(source)}_{source.number}"
        self.lines.append(f"{name} = {text}")
        self.names[source] = name
        return name

    def step(self, source: Source) -> str:
        """Text that reads the value at the end of a path from the one before it."""
        if source.kind == "arg":
            return f"args[{source.key}]"
        if source.kind == "kwarg":
            return f"kwargs[{source.key!r}]"
        parent = self.path(source.parent)
        if source.kind == "dict":
            return f"{parent}.__dict__"
        if source.kind == "slots":
            return f"{self.constant(SlotsView, 'slots')}({parent})"
        if source.kind == "item":
            return f"{parent}[{self.constant(source.key)}]"
        if source.kind == "cell":
            return f"{parent}.cell_contents"
        if source.kind == "len":
            return f"len({parent})"
        return f"{parent}.{source.key}"

    # --- guards -----------------------------------------------------------------------------------------------------

    def guard(self, guard: Guard) -> Optional[str]:
        """The condition under which a guard fails; None if there is nothing to check."""
        test, expected = guard.test, guard.expected
        if test == "distinct":
            ids = ", ".join(f"id({self.path(s)})" for s in expected)
            return f"len({{{ids}}}) != {len(expected)}"
        if test == "reports":
            return f"not {self.constant(reports_plainly, 'reports')}({', '.join([self.path(s) for s in expected])})"
        if test == "apart":
            written, others = [f"({commas([self.path(s) for s in sources])})" for sources in expected]
            return f"{self.constant(overlap, 'overlap')}({written}, {others})"
        if test == "definitions":
            return f"{self._changes(expected)} and {self.constant(expected, 'definitions')}.changed()"
        if test == "expr":
            if expected[1] is True:
                return f"not {expected[0]}"
            if _has_equals_that_differ(expected[1]):
                return f"exact({expected[0]}) != {self.constant(exact(expected[1]))}"
            return f"{expected[0]} != {self.constant(expected[1])}"
        value = self.path(guard.source)
        if test == "type":
            return f"type({value}) is not {self.constant(expected, 'type')}"
        if test == "is":
            return f"{value} is not {self.constant(expected)}"
        if test == "eq":
            kind = self.constant(type(expected), "type")
            if expected != expected:
                return f"type({value}) is not {kind} or {value} == {value}"
            if _has_equals_that_differ(expected):
                return f"type({value}) is not {kind} or exact({value}) != {self.constant(exact(expected))}"
            return f"type({value}) is not {kind} or {value} != {self.constant(expected)}"
        if test == "len":
            return f"len({value}) != {expected}"
        if test == "keys":
            if not all(type(key) is str for key in expected):
                return f"exact(tuple({value})) != {self.constant(exact(expected))}"
            return f"tuple({value}) != {self.constant(expected)}"
        if test == "absent":
            return f"{self.constant(expected)} in {value}"
        if test == "lacks":
            return f"hasattr({value}, {expected!r})"
        if test == "same":
            return f"{value} is not {self.path(expected)}"
        if test == "unbound":
            return f"not is_empty({value})"
        if test == "range":
            return f"outside({self.arrays.get(guard.source, value)}, {expected[0]}, {expected[1]})"
        if test == "array":
            return self._array_guard(value, *expected, is_argument=guard.source.parent is None)
        kind, requires_grad, shape, dtype = expected
        array = self._array_name(guard.source)
        own = f"type({value}) is not {self.constant(kind, 'type')}"
        self.lines.append(f"if {own}: {self.fail()}")
        self.lines.append(f"{array} = {value}._data[0]")
        inside = self._array_guard(array, shape, dtype, guard.source.parent is None)
        return f"{value}._requires_grad is not {requires_grad} or {value}._layout is not None{f' or {inside}' if inside else ''}"

    def _changes(self, relied: Definitions) -> str:
        """The condition under which something was assigned that may count: a call of the native function, or written out."""
        known = relied.known
        if definitions.unchanged is not _unchanged_in_python:
            return f"not unchanged({self.constant(known, 'known')})"
        tags = self.constant(known.tags, "tags")
        tests = [f"{self.constant(view, 'version')}[0] != {tags}[{i}]" for i, view in enumerate(known.views)]
        for function, *parts in zip(known.functions, known.codes, known.defaults, known.keyword_defaults):
            name = self.constant(function, "function")
            tests += [f"{name}.{part} is not {self.bound(value)}" for part, value in
                      zip(("__code__", "__defaults__", "__kwdefaults__"), parts)]
        tests += [f"{self.constant(space, 'module')}.get({key!r}) is not {self.bound(value)}"
                  for space, key, value in zip(known.spaces, known.keys, known.values)]
        tests += [f"{self.constant(known.token, 'token')}[0] != get_cache_token()"] if known.token else []
        return f"({' or '.join(tests)})"

    def _array_guard(self, name: str, shape: Tuple[Size, ...], dtype: np.dtype, is_argument: bool) -> Optional[str]:
        """None where it is left to `_ask_for_arrays`."""
        if self._waiting is not None and all(type(n) is int for n in shape):
            if is_argument and shape and not self._is_asked:       # the size of a batch, which differs most often, at once
                self._is_asked = True
                self.lines.append(f"if {name}.shape[0] != {shape[0]}: {self.fail()}")
            self._waiting.append((name, (np.array(shape, np.int64).tobytes(), dtype)))
            return None
        wanted = f"{name}.shape != {shape}" if all(type(n) is int for n in shape) else \
            " or ".join([f"{name}.ndim != {len(shape)}"] + [self._size_guard(f"{name}.shape[{i}]", n) for i, n in enumerate(shape)])
        return f"type({name}) is not ndarray or {wanted} or {name}.dtype != {self.constant(dtype, 'dtype')}"

    def _size_guard(self, text: str, size: Size) -> str:
        """The condition under which a size differs; a free one gets its name where it is met first, and is not too small."""
        if not isinstance(size, Dim) or size in self.sizes:
            return f"{text} != {size}"
        self.sizes.add(size)
        return f"({size} := {text}) < {at_least(str(size))}"

    def _array_name(self, source: Source) -> str:
        self.arrays[source] = f"{self.path(source)}_array"
        return self.arrays[source]

    def fail(self) -> str:
        """The statement where a guard fails."""
        return "return MISS"

    def guards(self, diagnose: bool = False) -> List[str]:
        """All guards as lines, in the order in which they were relied on."""
        self._calling_conditions()
        self._waiting = None if diagnose or fits is _fits_in_python else []
        for index, guard in enumerate(self.outcome.guards):
            if guard.test not in _ANY_ARRAY:
                self._ask_for_arrays()
            if diagnose:
                self.fail = lambda index=index: f"failed.append({index}); return failed"   # type: ignore[method-assign]
            condition = self.guard(guard)
            if condition is None:
                continue
            soft = diagnose and guard.test in ("eq", "expr", "absent")
            self.lines.append(f"if {condition}: {f'failed.append({index})' if soft else self.fail()}")
        self._ask_for_arrays()
        return self.lines

    def _ask_for_arrays(self) -> None:
        """One call for all arrays so far, which takes less time than a comparison for each."""
        if self._waiting:
            expected = self.constant(tuple([wanted for _, wanted in self._waiting]), "expected")
            names = ", ".join([name for name, _ in self._waiting])
            self.lines.append(f"if not {self.constant(fits, 'fits')}({expected}, {names}): {self.fail()}")
            self._waiting.clear()

    def _calling_conditions(self) -> None:
        """The first line of every entry: how many arguments there are, Chainer's configuration, and no hooks."""
        roots = {g.source for g in self.outcome.guards if g.source is not None and g.source.parent is None}
        positions = sum(source.kind == "arg" for source in roots)
        keywords = sum(source.kind == "kwarg" for source in roots)
        order = self.constant(self.outcome.keywords)
        checks = [f"len(args) != {positions}",
                  "kwargs" if not keywords else "len(kwargs) != 1" if keywords == 1 else f"tuple(kwargs) != {order}",
                  *[self._settings_guard(f"{name}.__dict__", settings_of(entries)) for name, entries in
                    (("global_config", chainer.global_config.__dict__), ("local_config", self.outcome.config))],
                  *[f"{self.constant(call, 'call')}.failed" for call in relied_on(self.outcome.graph)],
                  "function_hooks()" if chainer._get_link_hooks() else "function_hooks() or link_hooks()"]
        self.lines.append(f"if {' or '.join(checks)}: {self.fail()}")


    def _settings_guard(self, text: str, expected: Dict[str, Any]) -> str:
        """Compared whole first: mostly there are no entries but Chainer's.  ``mixed16`` equals float16, and is another one."""
        name = self.constant(expected, "config")
        mixed = f" or {text}['dtype'] is not {self.constant(expected['dtype'], 'dtype')}" if "dtype" in expected else ""
        return f"{text} != {name} and settings_differ({text}, {name}){mixed}"


def compile_diagnosis(guards: Guards) -> Any:
    """``diagnose(args, kwargs)``: the indexes of the guards that fail; those after a broken path are not reached."""
    lines = ["failed = []", "try:"] + [f"    {line}" for line in guards.guards(diagnose=True)]
    lines += ["except GUARD_ERRORS:", "    failed.append(-1)", "return failed"]
    text = "def diagnose(args, kwargs):\n" + "".join(f"    {line}\n" for line in lines).replace("return MISS", "return [-1]")
    return compile_text(text, f"<dy2static guards {next(_serial)}>", guards.namespace)["diagnose"]


def exact(value: Any) -> Any:
    """A form of a value that is equal only for values that nobody can tell apart: not 0.0 and -0.0, not 1 and True."""
    if isinstance(value, (float, complex, np.generic)):
        return type(value), repr(value)
    if isinstance(value, range):
        return range, value.start, value.stop, value.step
    if isinstance(value, (set, frozenset)):
        return frozenset([exact(item) for item in value])
    return tuple([exact(item) for item in value]) if type(value) is tuple else (type(value), value)


def _has_equals_that_differ(value: Any) -> bool:
    """Whether there may be an equal value of the same type that is not the same."""
    if isinstance(value, (float, np.floating)):
        return bool(value == 0)
    return isinstance(value, (complex, np.complexfloating, range, set, frozenset))


_NOTHING = object()


def _is_empty(cell: Any) -> bool:
    try:
        return cell.cell_contents is _NOTHING
    except ValueError:
        return True


def commas(items: Sequence[str]) -> str:
    """The items of a tuple as text."""
    return f"{items[0]}," if len(items) == 1 else ", ".join(items)


def _hint(source: Source) -> str:
    step: Optional[Source] = source
    while step is not None:
        if step.kind in ("item", "attr", "kwarg") and isinstance(step.key, str) and step.key.isidentifier():
            return f"{step.key}{'_vars' if source.kind in ('dict', 'slots') else ''}"
        if step.kind == "arg":
            return f"x{step.key}{'_vars' if source.kind in ('dict', 'slots') else ''}"
        step = step.parent
    return "v"

