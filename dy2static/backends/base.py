"""What a backend is: it makes functions of graphs."""
from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, Callable, ClassVar, Collection, Hashable, Mapping, Optional, Protocol, Sequence, Tuple

import numpy as np

from ..errors import Location
from ..ir.graph import Graph, Node, Value
from ..passes import Pipeline
from ..passes.in_place import Update
from ..runtime.clocks import Clock
from ..runtime.segment import Footprint
from .updates import UpdateCall


@dataclass(frozen=True, eq=False)
class Executable:
    """A graph as a function.

    call: ``call(arena, *inputs) -> (outputs..., saved...)``, a Python function.  source: its text.
    results: its local variables with these results; origins: the user's place for its lines: both for calls that fail.
    make_arena: new working memory for one call; None if it needs none.  place: where calls run that may use the same memory one
    after the other (a stream of a GPU); None if that does not matter.  footprint: how many bytes that is, and the rest.
    native_text: gives `native_code`; native_nodes: how many nodes of the graph are in there.
    updates: functions for the updates that belong to the graph.  settle: does what a call has left to them to do, if they have not
    done it; None if it leaves nothing.
    """

    call: Callable[..., Tuple[Any, ...]]
    source: str
    results: Tuple[str, ...]
    origins: Mapping[int, Location]
    make_arena: Optional[Callable[[], Any]] = None
    place: Optional[Callable[[], Hashable]] = None
    footprint: Footprint = Footprint()
    native_text: Callable[[], str] = str
    native_nodes: int = 0
    updates: Tuple[UpdateCall, ...] = ()
    settle: Optional[Callable[[], None]] = None

    @property
    def native_code(self) -> str:
        """The native part of it, as text; "" where there is none."""
        return self.native_text()


class Text(Protocol):
    """What a backend has made of a graph, but for what a process has to do itself.  `ir.packing` can write it."""

    def start(self, on_numpy: Callable[[], Compilation]) -> Compilation:
        """Go on from here.  on_numpy: begins to make the function of the same graph on NumPy, should the backend not be able to."""


class Compilation(Protocol):
    """A graph on its way to an `Executable`, while another process may work on it.

    text: once it is finished, what another process can go on from; None where there is no such thing.
    """

    text: Optional[Text]

    def ready(self) -> bool:
        """Whether `finish` has nothing to wait for."""

    def finish(self) -> Executable:
        """The function; waits for it where that must be."""


class Done:
    """A compilation with nothing left to do."""

    def __init__(self, executable: Executable, text: Optional[Text] = None):
        self.executable, self.text = executable, text

    def ready(self) -> bool:
        """As `Compilation.ready`: always."""
        return True

    def finish(self) -> Executable:
        """As `Compilation.finish`."""
        return self.executable


class Arrays(Protocol):
    """The library whose arrays the programs of a backend take and give."""

    device: str

    def empty(self, shape: Tuple[int, ...], dtype: np.dtype) -> Any:
        """A new array without contents."""

    def asarray(self, value: Any) -> Any:
        """The value as an array of this library."""

    def is_array(self, value: Any) -> bool:
        """Whether a value is one."""


class HostArrays:
    """NumPy's arrays."""

    device = "cpu"

    def empty(self, shape: Tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """As `Arrays.empty`."""
        return np.empty(shape, dtype)

    def asarray(self, value: Any) -> np.ndarray:
        """As `Arrays.asarray`."""
        return np.asarray(value)

    def is_array(self, value: Any) -> bool:
        """As `Arrays.is_array`."""
        return isinstance(value, np.ndarray)


class Backend(abc.ABC):
    """One way to run graphs.  It has no state: one object serves all programs.

    name: what `to_static` calls it.  passes: what it does with a graph before it is written as a function; inner: what it does
    then with the graph, or parts of it.
    arrays: what its programs compute with.
    is_compiled: whether it makes machine code.
    has_updates: whether it makes functions of updates, which change arrays in their own memory.
    writes_parts: whether these may be writes of NumPy into parts of arrays.
    keeps: whether later processes may go on from its texts.
    has_native_calls: whether what surrounds its functions (Variables, updates) is to be native code, too.
    """

    name: ClassVar[str]
    passes: ClassVar[Pipeline]
    inner: ClassVar[Tuple[Pipeline, ...]] = ()
    arrays: ClassVar[Arrays] = HostArrays()
    is_compiled: ClassVar[bool] = False
    has_updates: ClassVar[bool] = False
    writes_parts: ClassVar[bool] = False
    keeps: ClassVar[bool] = False
    has_native_calls: ClassVar[bool] = False

    @abc.abstractmethod
    def supports(self, node: Node) -> bool:
        """Whether it computes a node itself; what it does not support, it leaves to NumPy."""

    def foresee(self, graph: Graph) -> None:            # noqa: B027  (most have nothing to begin)
        """Begin what takes long and programs of a graph are sure to need, before the passes that come first have run."""

    @abc.abstractmethod
    def start(self, graph: Graph, *, name: str, escaping: Collection[Value], saved: Tuple[Value, ...] = (),
              recomputes: bool = False, clock: Optional[Clock] = None, updates: Sequence[Update] = ()) -> Compilation:
        """Begin to make a function of a graph.

        escaping: values whose arrays somebody outside will hold: they get new memory in every call.
        saved: values that the function also returns, behind the outputs; they may stay in the arena.
        recomputes: whether memory is to be saved.  clock: what is told when each node has run.
        updates: what is to be made functions of, too; none where not `has_updates`.
        Where `shared` gives something, that may be the argument of this name.
        """

    def shared(self) -> Any:
        """What `start` takes as ``shared``; None if this makes no difference.

        It is for several functions that are finished only when all of them have been started: a compiler may work on them at once.
        """
        return None

    def compile(self, graph: Graph, **options: Any) -> Executable:
        """The function of a graph; options as those of `start`."""
        return self.start(graph, **options).finish()

    def __repr__(self) -> str:
        return f"<backend {self.name!r}>"


def results_of(graph: Graph, placed: Collection[Value] = ()) -> int:
    """The bytes of the results that leave a graph in memory of their own.  placed: values that are in the arena."""
    return int(sum(v.nbytes for v in set(graph.outputs).difference(graph.inputs, placed)))
