"""The report of `StaticFunction.explain`: each source line with what became of it, and why."""
from __future__ import annotations

import ast
import contextlib
import dis
import linecache
import sys
import textwrap
import types
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..conversion import converted_codes
from ..errors import Dy2StaticError, Location
from ..heap.aborts import CaptureAborted
from ..heap.locations import is_user_code
from ..heap.wording import raised_in_capture
from ..markup import counted
from ..pyast.source import fetch
from ..record.guards import ArrayMatch, EqualsMatch, ExpressionMatch, VariableMatch
from ..record.outcome import Event
from .pages import explanation_page
from .segmentation import splitting

#: What a report says a program was compiled for.
_SHOWN = (EqualsMatch, ExpressionMatch, VariableMatch, ArrayMatch)


class Mark(NamedTuple):
    """What became of one operation of a line.

    kind: ``graph``, ``opaque`` (in the graph, but kept whole), ``host`` (runs at every call), ``Python`` (runs at capture
    only), ``not run`` (not by this call), ``part`` (in a compiled part, without operations of its own), ``cut`` (runs as Python
    between compiled parts), or ``eager`` (the whole call runs eagerly because of it).
    """

    kind: str
    text: str = ""
    why: str = ""

    def __str__(self) -> str:
        text = f"{_WORDS[self.kind]}: {' '.join(self.text.split())}" if self.text else _WORDS[self.kind]
        return f"{text} ({self.why})" if self.why else text


class Line(NamedTuple):
    """A source line, its number in the file, and its marks."""

    number: int
    text: str
    marks: Tuple[Mark, ...]


class Listing(NamedTuple):
    """A function that the call went through, line by line."""

    name: str
    file: str
    lines: Tuple[Line, ...]


class Divided(NamedTuple):
    """What is known of a function that runs in parts.

    parts: how many there are.  cuts: the lines that Python carries out, with ``at``, ``reason`` and ``hint``.
    programs: of the parts, and of the functions called between them.  spans: file, first and last line of each part that has one.
    """

    parts: int
    cuts: Sequence[Any]
    programs: Sequence[Any]
    spans: Sequence[Tuple[str, int, int]] = ()

    @property
    def events(self) -> Tuple[Event, ...]:
        """What became of the operations in the parts."""
        return tuple(dict.fromkeys(event for program in self.programs for event in program.events))

    @property
    def counts(self) -> Dict[str, int]:
        """Sums of the counts of the programs."""
        names = dict.fromkeys(name for program in self.programs for name in program.counts)
        return {name: sum(program.counts.get(name, 0) for program in self.programs) for name in names}


class Explanation(str):
    """The report of `StaticFunction.explain`: a string, whose parts are also attributes.

    listings: the function and the user's functions that it calls.  reason, at, hint: why the call runs in eager mode, or None.
    cuts: the lines that run as Python between compiled parts, each with ``at``, ``reason`` and ``hint``.
    counts: of the nodes, as in `StaticFunction.stats`.  depends: the conditions that later calls must meet, as text.
    segments: how many FunctionNodes compute the gradients; split_by: the stored Variables for which these are several.
    """

    listings: Tuple[Listing, ...]
    reason: Optional[str]
    at: Optional[Location]
    hint: Optional[str]
    counts: Dict[str, int]
    depends: Tuple[str, ...]
    cuts: Tuple[Any, ...]
    segments: int
    split_by: Tuple[str, ...]

    def _repr_html_(self) -> str:
        return explanation_page(self)

    def marks(self, line: int, file: Optional[str] = None) -> Tuple[Mark, ...]:
        """The marks of a line, of the function itself if no file is given."""
        file = self.listings[0].file if file is None else file
        return tuple(mark for listing in self.listings if listing.file == file
                     for one in listing.lines if one.number == line for mark in one.marks)


_WORDS = {"graph": "graph", "opaque": "graph, kept whole", "host": "host, at every call", "Python": "Python",
          "not run": "not run", "eager": "EAGER", "cut": "Python, between compiled parts", "part": "in a compiled part"}
_KINDS = {"staged": "graph", "opaque": "opaque", "host": "host"}


class Coverage:
    """The user's code that runs, and its lines."""

    def __init__(self) -> None:
        self.codes: Dict[types.CodeType, None] = {}
        self.lines: Set[Tuple[str, int]] = set()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch this thread inside the block."""
        saved = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(saved)

    def _enter(self, frame: Any, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not is_user_code(code):
            return None
        self.codes[code] = None
        return self._line

    def _line(self, frame: Any, event: str, argument: Any) -> Any:
        if event == "line":
            self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line


def explanation(function: Any, program: Any, stop: Optional[CaptureAborted], coverage: Coverage,
                divided: Optional[Divided] = None, is_open: bool = False, pace: str = "") -> Explanation:
    """The report of a call that gave a program, or stopped, or runs in parts.

    is_open: whether a call that stopped may yet turn out to run in parts: none like it was called.  pace: why calls run as Python.
    """
    if divided is not None:
        stop, program = None, None
    source = divided or program or stop
    events = () if source is None else source.events
    marks: Dict[Tuple[str, int], List[Mark]] = {}
    for event in events:
        if event.at is not None:
            marks.setdefault((event.at.file, event.at.line), []).append(Mark(_KINDS[event.kind], event.text, event.why))
    if stop is not None and stop.at is not None:
        marks.setdefault((stop.at.file, stop.at.line), []).append(Mark("eager", stop.reason, stop.hint or ""))
    for cut in () if divided is None else divided.cuts:
        marks.setdefault((cut.at.file, cut.at.line), []).append(Mark("cut", "", f"{cut.reason}; {cut.hint}"))
    listings = [_listing(name, file, first, text, marks, coverage, () if divided is None else divided.spans)
                for name, file, first, text in _texts(function, coverage)]
    counts = {} if source is None or source is stop else source.counts
    depends = () if program is None else tuple(dict.fromkeys(
        guard.describe() for guard in program.guards if isinstance(guard, _SHOWN)))
    head = f"this call runs eagerly: {stop.reason}{_OPEN if is_open else ''}" if stop is not None else _summary(counts)
    if divided is not None:
        head = (f"this call runs in {counted(divided.parts, 'compiled part')}, with Python for "
                f"{counted(len(divided.cuts), 'line')} between them; "
                f"{head[len(_COMPILED):]}")
    head = f"{head}\n{pace}" if pace else head
    shown = [head, *map(_text, listings)]
    listed = {(listing.file, line.number) for listing in listings for line in listing.lines}
    shown += [f"  in {file}:{line}: {'; '.join(dict.fromkeys(map(str, found)))}" for (file, line), found in marks.items()
              if (file, line) not in listed]
    split_by = tuple([] if program is None else splitting(program))
    if split_by:
        shown.append("\n".join([f"gradients are computed by {len(program.segments)} FunctionNodes, not one, since later code can "
                                "reach", *_some(split_by)]))
    if depends:
        shown.append("\n".join(["made for calls with", *_some(depends)]))
    title, *lines = shown[1].split("\n", 1)             # without lines where there is no source
    made = Explanation("\n".join([title, head, *lines, *shown[2:]]))
    made.listings, made.counts, made.depends = tuple(listings), dict(counts), depends
    made.segments, made.split_by = (0 if program is None else len(program.segments)), split_by
    made.cuts = () if divided is None else tuple(divided.cuts)
    made.reason, made.at, made.hint = (None, None, None) if stop is None else (stop.reason, stop.at, stop.hint)
    return made


_MOST_SHOWN = 20
_OPEN = "; in compiled parts around such lines, where that pays: the first call of this kind decides"
_NUMPY = ("numpy_call", "checked_call", "sized_call")


def _some(texts: Sequence[str]) -> List[str]:
    """The first of these texts, a line for each, and how many more there are."""
    more = [f"    and {len(texts) - _MOST_SHOWN} more"] if len(texts) > _MOST_SHOWN else []
    return [*(f"    {text}" for text in texts[:_MOST_SHOWN]), *more]


_COMPILED = "this call is compiled; "


def _summary(counts: Dict[str, int]) -> str:
    whole = counts.get("opaque", 0)
    host, numpy = counts.get("host_call", 0), sum(counts.get(kind, 0) for kind in _NUMPY)
    own = counts.get("nodes", 0) - whole - host - numpy - counts.get("stores", 0)
    return (f"{_COMPILED}operations: {own}, decisions and loops on array values among them: "
            f"{counts.get('regions', 0)}, calls of NumPy: {numpy}, functions kept whole: {whole}, calls on the host: {host}")


def _texts(function: Any, coverage: Coverage) -> Iterator[Tuple[str, str, int, str]]:
    """Name, file, first line and text of the function and of the others that ran."""
    own: Any = None
    try:
        source = fetch(function)
        own = source.file, source.node.lineno           # what is converted begins behind the decorators
        yield function.__qualname__, source.file, source.first_line, source.text
    except Dy2StaticError:
        yield function.__qualname__, function.__code__.co_filename, function.__code__.co_firstlineno, ""
    converted = converted_codes()
    for code in coverage.codes:
        if code in converted and (code.co_filename, code.co_firstlineno) != own:
            last = max(_lines_of(code), default=code.co_firstlineno)
            lines = [linecache.getline(code.co_filename, n) for n in range(code.co_firstlineno, last + 1)]
            name = getattr(code, "co_qualname", code.co_name)
            yield name, code.co_filename, code.co_firstlineno, textwrap.dedent("".join(lines))


def _lines_of(code: types.CodeType) -> Iterator[int]:
    yield from (line for _, line in dis.findlinestarts(code) if line is not None)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _lines_of(const)


def _listing(name: str, file: str, first: int, text: str, marks: Dict[Tuple[str, int], List[Mark]],
             coverage: Coverage, spans: Sequence[Tuple[str, int, int]]) -> Listing:
    own = {line: tuple(dict.fromkeys(found)) for (where, line), found in marks.items() if where == file}
    last_line = first + text.count("\n")
    within = [(begin, end) for where, begin, end in spans if where == file and first <= begin <= last_line]
    for start, end in _statements(text, first):
        span = range(start, end + 1)
        if not any(line in own for line in span):
            ran = any((file, line) in coverage.lines for line in span)
            own[start] = (Mark("Python") if ran else _unseen(start, within),)
    lines = [Line(number, line, own.get(number, ())) for number, line in enumerate(text.splitlines(), first)]
    return Listing(name, file, tuple(lines))


def _unseen(line: int, parts: Sequence[Tuple[int, int]]) -> Mark:
    """What became of a line that no capture went through, in a function with these compiled parts: first and last lines."""
    if any(begin <= line <= end for begin, end in parts):
        return Mark("part")
    return Mark("Python", "", "outside of the compiled parts") if parts else Mark("not run")


def _statements(text: str, first: int) -> List[Tuple[int, int]]:
    """First and last line of each statement that does something; of one with blocks, of what is before them."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []                       # a lambda from the middle of a line
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or isinstance(node, _SILENT) or \
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        body = getattr(node, "body", None)
        end = (max(node.lineno, body[0].lineno - 1) if body else node.end_lineno) or node.lineno
        found.append((node.lineno + first - 1, end + first - 1))
    return found


_SILENT = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Pass, ast.Global, ast.Nonlocal, ast.Try)


def _text(listing: Listing) -> str:
    place = f"{listing.file}:{listing.lines[0].number}" if listing.lines else f"{listing.file}, which cannot be read"
    found = [f"{listing.name} ({place})"]
    for line in listing.lines:
        marks = "; ".join(map(str, line.marks))
        found.append(f"{line.number:5d} {line.text:<60} {'| ' + marks if marks else ''}".rstrip())
    return "\n".join(found)


def stopped_by(error: Exception, at: Optional[Location]) -> CaptureAborted:
    """An error of the symbolic run as the reason why a call runs eagerly."""
    if isinstance(error, Dy2StaticError):
        return CaptureAborted(error.args[0], error.at, error.hint)
    reason, hint = raised_in_capture(error)
    return CaptureAborted(reason, at, hint)
