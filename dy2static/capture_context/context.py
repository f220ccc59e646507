"""A capture, and those of its parts that lead back to it."""
from __future__ import annotations

from typing import AbstractSet, Any, Callable, Container, Dict, List, NoReturn, Optional, Protocol, Set, Tuple, Type

from ..errors import Location
from ..ir.building import Builder
from ..ir.graph import Value
from ..record.guards import Guard
from ..record.paths import Source
from ..runtime.definitions import Definitions
from .arrays import ArrayWrites
from .calls import ChainerCalls, Functions, HostCalls, Imports, Inputs, NumPyCalls
from .effects import Decisions, Effects, Operands, Reports
from .gradients import Gradients, GradientState, MadeParameters, ReboundArrays
from .heap import Attributes, ClassAttributes, ConfigEntries, Makers, Objects
from .numbers import AssignedItems, DecidingContents, Expressions, FilledLists, IndexRanges, Texts, ValueNumbering


class Calls(Protocol):
    """What runs when."""

    @property
    def staged_codes(self) -> Container[Any]:
        """The code of what is converted already."""

    @property
    def capture(self) -> CaptureContext:
        """The capture that the calls are of."""

    def callee(self, function: Any) -> Callable[..., Any]:
        """What to call for a function."""

    def native(self, function: Any) -> Callable[..., Any]:
        """What runs the function now."""


class Heap(Protocol):
    """Shadows and guards.

    containers: shadows of containers.  grown: paths of lists that are longer or shorter in nearly every call.
    counts: the numbers that updates are known to change.  stale: a host call that may have changed what is read from here on.
    """

    guards: List[Guard]
    definitions: Definitions
    containers: List[Any]
    grown: AbstractSet[Tuple]
    counts: Set[Source]
    is_disposed: bool
    stale: Optional[str]

    @property
    def capture(self) -> CaptureContext:
        """The capture that the heap is of."""

    @property
    def objects(self) -> Objects:
        """Objects and classes."""

    @property
    def class_attributes(self) -> ClassAttributes:
        """Attributes of classes."""

    @property
    def attributes(self) -> Attributes:
        """Attributes of objects."""

    @property
    def makers(self) -> Makers:
        """What makes shadows."""

    def source(self, step: Type[Source], parent: Optional[Source], key: Any = None) -> Source:
        """The interned source of one step."""

    def guard(self, guard: Guard) -> None:
        """Remember what the capture relies on."""

    def shadow(self, real: Any, source: Source) -> Any:
        """What user code sees instead of an object, which was read by this path."""

    def fix(self, real: Any, source: Source) -> None:
        """Guard what is read as it is, so that it cannot be an input."""

    def check_fresh(self, value: Any = None) -> None:
        """Stop if this value, just read from an object of the user's, may have been changed by a host call."""

    def rely_on_member(self, member: Any) -> None:
        """Guard the attributes of a member of an enum."""

    def has_varying_contents(self, source: Source) -> bool:
        """Whether a list is an input as a whole, because its length has been seen to change."""

    def track(self, container: Any) -> Any:
        """Take down a shadow of a container, to look for changes in it later."""

    def real_of(self, made: Any) -> Any:
        """The object of the user's that a shadow or a symbolic value stands for."""

    def has_met(self, real: Any) -> bool:
        """Whether there is a shadow or a symbolic value of this object."""

    def source_of(self, item: Any) -> Optional[Source]:
        """The path of the object that a shadow stands for; None for what is made during the capture."""

    def known(self, real: Any) -> Optional[Tuple[Any, Source]]:
        """What stands for an object, and the path by which it was read first; None if it was not."""

    def remember(self, real: Any, made: Any, source: Source) -> None:
        """Let something stand for an object from here on."""

    def came_from(self, made: Any, source: Source) -> None:
        """Note by which path something was read that stands for an object of the user's."""


class CaptureContext(Protocol):
    """One symbolic run.

    builder: takes new nodes; root: that of the whole graph.  known: what values hold that are static.  dimensions: of numbers
    that are sizes, which; sizes_of: of arrays.  failed: why the capture stops.  forks: how many blocks were captured anew.
    rolls, rolled: whether iterations may become a loop of the graph, and whether that was tried.
    is_inner, knows_layouts, leaves_layouts: see `Capture`.
    handling: the exception that is handled where the function is called.
    """

    builder: Builder
    root: Builder
    known: Dict[Value, Any]
    dimensions: Dict[Value, Any]
    sizes_of: Dict[Value, Any]
    failed: Any
    rolls: bool
    rolled: bool
    is_inner: bool
    knows_layouts: bool
    leaves_layouts: bool
    forks: int
    handling: Optional[BaseException]

    @property
    def heap(self) -> Heap:
        """Shadows and guards."""

    @property
    def entries(self) -> ConfigEntries:
        """The entries of ``chainer.config``."""

    @property
    def inputs(self) -> Inputs:
        """What the caller brings."""

    @property
    def calls(self) -> Calls:
        """What runs when."""

    @property
    def functions(self) -> Functions:
        """Converted functions."""

    @property
    def imports(self) -> Imports:
        """What ``import`` does."""

    @property
    def numpy(self) -> NumPyCalls:
        """Calls of NumPy."""

    @property
    def chainer(self) -> ChainerCalls:
        """Functions of Chainer."""

    @property
    def host(self) -> HostCalls:
        """Calls that wait for the host."""

    @property
    def expressions(self) -> Expressions:
        """Numbers that change."""

    @property
    def texts(self) -> Texts:
        """Texts that change."""

    @property
    def effects(self) -> Effects:
        """Writes."""

    @property
    def reports(self) -> Reports:
        """What is reported."""

    @property
    def operands(self) -> Operands:
        """What calls get that the program makes."""

    @property
    def array_writes(self) -> ArrayWrites:
        """Arrays that are written in place."""

    @property
    def staging(self) -> Decisions:
        """Decisions and loops."""

    @property
    def gradients(self) -> Gradients:
        """Gradients that the function asks for."""

    @property
    def grad_state(self) -> GradientState:
        """Gradients that Variables keep."""

    @property
    def rebound_arrays(self) -> ReboundArrays:
        """Variables that are given another array."""

    @property
    def made_parameters(self) -> MadeParameters:
        """Parameters that are made inside."""

    @property
    def index_ranges(self) -> IndexRanges:
        """What is known of indices."""

    @property
    def filled_lists(self) -> FilledLists:
        """Lists as long as an axis of unknown size."""

    @property
    def assigned_items(self) -> AssignedItems:
        """Items assigned at places that only the run knows."""

    @property
    def deciding(self) -> DecidingContents:
        """Contents of arrays that decide something."""

    @property
    def value_numbering(self) -> ValueNumbering:
        """Calls with the same result."""

    def mark(self) -> Any:
        """How far the capture has come, for `go_back`."""

    def resume(self) -> None:
        """Go on where the capture stopped, with what was running there ended."""

    def go_back(self, mark: Any) -> None:
        """Forget everything that has been captured since ``mark``; that part of the capture was stopped."""

    def set_apart(self, stop: Any) -> bool:
        """Capture calls of the update rule in which a decision stopped the capture by themselves; whether that is new."""

    def check(self) -> None:
        """Stop the capture again if user code caught the exception that stopped it."""

    def abort(self, reason: str, hint: Optional[str] = None, because: Any = None, of_host: bool = False,
              at: Optional[Location] = None, **kind: Any) -> NoReturn:
        """Stop the capture."""

    def abort_decision(self) -> NoReturn:
        """Stop because Python needs to know what an array holds."""

    def event(self, kind: str, text: str, why: str = "") -> None:
        """Note what became of an operation."""

    def callee(self, function: Any) -> Callable[..., Any]:
        """What to call for a function of the user's."""

    def decorator(self, function: Any) -> Callable[..., Any]:
        """What to apply for a decorator."""

    def identical(self, first: Any, second: Any) -> Any:
        """``first is second`` of what they stand for."""

    def decides(self, value: Any) -> bool:
        """Whether the truth of a value is known at run time only."""

    def wrap(self, value: Value) -> Any:
        """The symbolic value that user code gets for a value of the graph."""

    def one_of_few(self, number: Any) -> int:
        """A whole number that Python needs, decided."""

    def bound_of(self, number: Any) -> Optional[int]:
        """What a whole number is certain to be below."""
