"""The first line of the user's where a compiled run computes something else than the eager one."""
from __future__ import annotations

import contextlib
import linecache
import re
import sys
import types
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

import chainer
import numpy as np

from ...errors import Location
from ...heap.locations import is_user_code, user_location
from ...ir.graph import Node
from ...ir.interpret import interpret
from ...pyast.loader import is_placed, line_in_text, text_of
from ...runtime.devices import on_host
from ...runtime.hooks import stage
from ...runtime.program import Program
from ...runtime.segment import BackwardProgram
from ...symbolic.patches import patched
from .compare import close
from .state import State
from .streams import recorded

Line = Tuple[str, int]


class Computed(NamedTuple):
    """A value that a line gave: its name in the user's code, or the function that gave it."""

    at: Location
    name: str
    value: np.ndarray


def first_line(call: Callable[[], Any], program: Program, compiled: Callable[[], Any], before: State,
               holder: Any) -> Optional[Location]:
    """Run both again from the state ``before`` and watch; None if the line cannot be told.

    holder: the object whose contents differ: if no value does, the line that changes it is named.
    """
    eager = _EagerWatch(holder)
    _again(before, eager, call)
    names = program.call.__globals__
    generated = _GeneratedWatch(names["forward"].__code__, names["origins"])
    _again(before, generated, compiled)
    graph = _GraphWatch()
    if generated.inputs is not None:
        before.restore()
        with recorded(silent=True), contextlib.suppress(Exception):
            interpret(program.graph, *generated.inputs, watch=graph)
    return _first_other(eager.computed, graph.by_line) or _first_other(generated.computed, graph.by_line) or eager.changed


def first_gradient(eager: Callable[[], Any], nodes: Iterable[Any], places: Mapping[int, Location],
                   compiled: Callable[[], Any], program: BackwardProgram) -> Optional[Location]:
    """The line whose gradient is the first to differ; None if it cannot be told.

    eager: runs backward through ``nodes``, which lines at ``places`` (by id) have applied.  compiled: runs ``program``.
    """
    computed: List[Computed] = []
    for node in nodes:
        _watch_backward(node, places.get(id(node)), computed)
    try:
        eager()
    finally:
        for node in nodes:
            node.__dict__.pop("backward", None)
    generated = _GeneratedWatch(program.run.__code__, program.origins)
    with generated.watching():
        compiled()
    known: Dict[Line, List[np.ndarray]] = {}
    for at, _, value in generated.computed:
        known.setdefault((at.file, at.line), []).append(value)
    last = [one for one, after in zip(computed, [*computed[1:], None]) if after is None or not one.at.same_line(after.at)]
    return _first_other(last, known)        # of one line, the last: what is before it need not be computed by itself


def _watch_backward(node: Any, at: Optional[Location], computed: List[Computed]) -> None:
    right = node.backward

    def backward(*args: Any) -> Any:
        gradients = right(*args)
        if at is not None:
            computed.extend(Computed(at, "", a) for g in gradients if g is not None for a in _arrays(g))
        return gradients
    node.backward = backward


def _again(before: State, watch: Any, call: Callable[[], Any]) -> None:
    before.restore()
    with recorded(silent=True), watch.watching(), contextlib.suppress(Exception):
        call()


def _first_other(computed: List[Computed], known: Dict[Line, List[np.ndarray]]) -> Optional[Location]:
    """The first place of a value that is none of those that another run computed on this line, though one is alike."""
    for at, _, value in computed:
        alike = [v for v in known.get((at.file, at.line), ()) if v.shape == value.shape and v.dtype == value.dtype]
        if alike and not any(close(value, v) for v in alike):
            return at
    return None


def _arrays(value: Any) -> Iterator[np.ndarray]:
    """Copies of the arrays that a value is or holds directly."""
    if isinstance(value, chainer.Variable):
        value = value.array
    value = on_host(value)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "fiubc":
        yield np.array(value)
    elif isinstance(value, (tuple, list)):
        for item in value[:16]:
            if not isinstance(item, (tuple, list)):
                yield from _arrays(item)


class _GraphWatch:
    """What the nodes of the graph give, by all lines of the user's that led to them."""

    def __init__(self) -> None:
        self.by_line: Dict[Line, List[np.ndarray]] = {}

    def __call__(self, node: Node, results: Tuple[Any, ...]) -> None:
        if node.loc is not None:
            for place in (*node.loc.callers, node.loc):
                self.by_line.setdefault((place.file, place.line), []).extend(a for r in results for a in _arrays(r))


class _Watch:
    """Values that lines give, in the order in which they do; taken from the local names of running functions."""

    def __init__(self) -> None:
        self.computed: List[Computed] = []

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch this thread inside the block; a debugger that is on sees nothing meanwhile."""
        saved = sys.gettrace()
        sys.settrace(self.enter)
        try:
            yield
        finally:
            sys.settrace(saved)

    def enter(self, frame: Any, event: str, argument: Any) -> Any:
        """Called for each new frame: what watches its lines, or None."""
        raise NotImplementedError

    def follow(self, frame: Any, place: Callable[[int], Optional[Location]], done: Callable[[Any], Any],
               written: Optional[Callable[[int], Set[str]]] = None,
               now: Callable[[Any], int] = lambda frame: frame.f_lineno) -> Any:
        """What watches the lines of a frame; ``done`` is told after each.

        written: the names that a line sets; without it, those whose values have changed.  now: the line of the frame.
        """
        known = {name: _mark(value) for name, value in frame.f_locals.items()}
        running = [now(frame)]

        def line(frame: Any, event: str, argument: Any) -> Any:
            if event == "opcode" and now(frame) == running[0]:
                return line
            at = place(running[0])
            names = None if written is None else written(running[0])
            for name, value in frame.f_locals.items() if event in ("line", "opcode", "return") else ():
                mark = None if names is not None else _mark(value)
                if name in names if names is not None else known.get(name) != mark:
                    known[name] = mark
                    self.computed += [Computed(at, name, array) for array in _arrays(value) if at is not None]
            if at is not None:
                done(at)
            running[0] = now(frame)
            return line
        return line


class Applied:
    """The nodes that this thread applies, by the user's lines."""

    def __init__(self) -> None:
        self.places: Dict[int, Location] = {}
        self.nodes: List[Any] = []

    @contextlib.contextmanager
    def taken_down(self) -> Iterator[None]:
        """Record what is applied inside the block."""
        with patched():
            saved, stage.observer = stage.observer, self
            try:
                yield
            finally:
                stage.observer = saved

    def apply(self, apply: Callable, node: chainer.FunctionNode, inputs: Any) -> Any:
        """Apply a function and record where."""
        outputs = apply(node, inputs)
        at = user_location()
        if at is not None:
            self.places[id(node)] = at
            self.nodes.append(node)
            self.applied(at, node, outputs)
        return outputs

    def applied(self, at: Location, node: Any, outputs: Any) -> None:
        """Called after each."""


class _EagerWatch(_Watch, Applied):
    """The user's lines, the Chainer functions they apply, and who changes the holder."""

    def __init__(self, holder: Any):
        _Watch.__init__(self)
        Applied.__init__(self)
        self.holder, self.before = holder, _fingerprint(holder)
        self.changed: Optional[Location] = None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch what this thread applies, too."""
        with self.taken_down(), super().watching():
            yield

    def applied(self, at: Location, node: Any, outputs: Any) -> None:
        """Record what a function returns."""
        self.computed += [Computed(at, type(node).__name__, a) for y in outputs for a in _arrays(y)]

    def enter(self, frame: Any, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not is_user_code(code):
            return None
        return self.follow(frame, lambda line: Location(code.co_filename, line, 0, code.co_name), self._look)

    def _look(self, at: Location) -> None:
        if self.holder is not None and self.changed is None and _fingerprint(self.holder) != self.before:
            self.changed = at


def _mark(value: Any) -> Any:
    """Something that changes when a name gets another value, or its array other contents."""
    if isinstance(value, chainer.Variable):
        value = value.array
    held = on_host(value)
    return (id(value), held.tobytes()) if isinstance(held, np.ndarray) else id(value)


def _fingerprint(holder: Any) -> Any:
    """Something that changes with the contents of an object."""
    if isinstance(holder, chainer.Variable):
        holder = holder.array
    holder = on_host(holder)
    if isinstance(holder, np.ndarray):
        return holder.tobytes()
    if isinstance(holder, dict):
        return tuple((id(key), id(value)) for key, value in holder.items())
    if isinstance(holder, (list, tuple, set)):
        return tuple(id(item) for item in holder)
    return tuple((name, id(value)) for name, value in getattr(holder, "__dict__", {}).items())


class _GeneratedWatch(_Watch):
    """The lines of a generated function, and what it was called with."""

    def __init__(self, code: types.CodeType, origins: Mapping[int, Location]):
        super().__init__()
        self.code, self.origins = code, origins
        self.inputs: Optional[List[Any]] = None

    def enter(self, frame: Any, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code is not self.code:
            return None
        given = [frame.f_locals[name] for name in code.co_varnames[1:code.co_argcount]]
        self.inputs = [value.copy() if isinstance(value, np.ndarray) else on_host(value) for value in given]
        frame.f_trace_opcodes = is_placed(code)         # where it has the user's lines, several of its own are one of these
        return self.follow(frame, self.origins.get, lambda at: None, self._written,
                           lambda frame: line_in_text(code, frame.f_lasti, frame.f_lineno))

    def _written(self, line: int) -> Set[str]:
        """The names that a line assigns or fills."""
        text = linecache.getline(text_of(self.code), line).partition("  #")[0]
        targets = "" if " = " not in text or text.index(" = ") > text.find("(") > -1 else text.partition(" = ")[0]
        return {*re.findall(r"\w+", targets), *re.findall(r"\bout=(\w+)", text)}
