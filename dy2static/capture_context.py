"""What the rooms below `capture` may ask of the capture that runs.

Calls go up through these protocols only: `tests/doors/test_layering.py` refuses attributes that are not here.  A part whose
class stands in a room below `capture` is given by that class, for the rooms above it.
"""
from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Container,
    ContextManager,
    Dict,
    Iterable,
    List,
    Mapping,
    NoReturn,
    Optional,
    Protocol,
    Sequence,
    Set,
    Tuple,
    Union,
)

from .errors import Location
from .ir.building import Builder
from .ir.graph import Node, Value
from .record.paths import Source

if TYPE_CHECKING:
    import chainer
    import numpy as np

    from .heap.heap import Heap
    from .heap.settings import ConfigEntries
    from .symbolic.host_objects import SymbolicObject
    from .symbolic.kept_gradients import KeptGradient
    from .symbolic.known_texts import SymbolicText
    from .symbolic.lists import StagedList
    from .symbolic.values import SymbolicArray, SymbolicScalar, SymbolicVariable
    from .symbolic.variable_identity import Choices
    from .symbolic.writes import ArrayWrites


class Inputs(Protocol):
    """What the caller brings."""

    def variable(self, real: chainer.Variable, source: Source) -> SymbolicVariable:
        """The symbolic form of a Variable of the user's."""

    def array(self, real: np.ndarray, source: Source) -> SymbolicArray:
        """The symbolic form of an array of the user's."""

    def object(self, real: Any, source: Source) -> SymbolicObject:
        """The symbolic form of an object that only the host can use."""

    def unknown(self, source: Source) -> SymbolicObject:
        """What is at the end of a path, of which nothing is known, nor relied on."""

    def list_of_numbers(self, source: Source, more: Sequence[Any]) -> StagedList:
        """The items of a list of floats of the user's, and more, as a new list of the graph."""

    def source_of(self, value: Value) -> Source:
        """The path that leads to an object."""

    def number(self, source: Source, real: Any, kind: str) -> SymbolicScalar:
        """The symbolic form of a number that changes from call to call."""

    def truth(self, source: Source, real: bool) -> SymbolicScalar:
        """The same of a truth value."""

    def numpy_number(self, source: Source, real: Any) -> SymbolicArray:
        """The same of a number of NumPy's."""

    def text(self, source: Source, real: Union[str, bytes]) -> SymbolicText:
        """The symbolic form of a text that changes from call to call."""

    def object_value(self, source: Source) -> Value:
        """An object as a value of the graph."""

    def number_value(self, text: str, kind: str, hint: Any) -> Value:
        """An expression over numbers as a value of the graph."""

    def text_value(self, text: str) -> Value:
        """An expression that gives a text as a value of the graph."""


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


class Functions(Protocol):
    """The converted functions."""

    def shadow_cells(self) -> Sequence[Any]:
        """The closure cells that converted functions share with the user's."""

    def staged(self, function: Any) -> Callable[..., Any]:
        """The converted form of a function."""


class Imports(Protocol):
    """What is imported inside.  builtins: the built-in names of converted functions."""

    builtins: Dict[str, Any]


class NumPyCalls(Protocol):
    """Calls of NumPy."""

    def call(self, function: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """What a call on symbolic arrays gives."""


class ChainerCalls(Protocol):
    """Functions of Chainer."""

    def apply(self, node: chainer.FunctionNode, inputs: Sequence[Any]) -> Tuple[SymbolicVariable, ...]:
        """What ``node.apply(inputs)`` gives."""

    def result(self, value: Value, inputs: List[Value], requires_grad: bool, connected: bool) -> SymbolicVariable:
        """A result of a function as a Variable."""

    def new_variable(self, array: Any, requires_grad: bool) -> SymbolicArray:
        """The array of a Variable that user code makes."""


class HostCalls(Protocol):
    """Calls that wait for the host."""

    def call(self, function: Any, args: Tuple, kwargs: Mapping[str, Any], types_: Optional[Tuple] = None, structure: Any = ...,
             name: str = "", plainly: bool = False) -> Any:
        """Leave a call to the host."""


class Expressions(Protocol):
    """Numbers that change from call to call."""

    def guard(self, text: str, value: Any) -> None:
        """Fix the value of an expression."""

    def operation(self, function: Callable, symbol: str, *operands: Any) -> Any:
        """What an operator gives for numbers."""

    def function_of_numbers(self, function: Callable, args: Tuple) -> Any:
        """What a function gives for numbers."""

    def function_of_list(self, function: Callable, items: Sequence[Any], first: Any) -> Any:
        """What ``sum`` gives for numbers."""

    def size_of(self, number: Any) -> Any:
        """The number as an int or a size; None if it is neither."""


class Texts(Protocol):
    """Texts that change from call to call."""

    def call(self, function: Callable, args: Tuple, kwargs: Mapping[str, Any] = ..., pattern: Optional[str] = None) -> Any:
        """What a function that only computes gives for texts and numbers."""

    def joined(self, *parts: Any) -> Any:
        """Texts, some of which only the run knows, one behind the other."""

    def part(self, text: Any, index: slice) -> Any:
        """A slice of a text that only the run knows."""


class Effects(Protocol):
    """Writes, in the order of effects."""

    def is_protected(self) -> bool:
        """Whether code of the user's would notice a failure here."""

    def store_writes(self, may_fail: bool = True) -> None:
        """Put pending writes into the program here."""

    def enter_decision(self) -> None:
        """The outermost decision starts here."""


class Reports(Protocol):
    """What is reported with ``chainer.report``.  made: all reports, in order."""

    made: List[Any]

    def in_iteration(self, begin: Sequence[Any]) -> ContextManager[List[Any]]:
        """The reports that an iteration of a loop makes, like those of the iteration before."""

    def values_of(self, reports: Sequence[Any]) -> Tuple:
        """What some reports store."""

    def repeat(self, reports: Sequence[Any], values: Sequence[Any]) -> None:
        """Report what a loop leaves."""


class Operands(Protocol):
    """What calls get that the program makes."""

    def ending(self) -> ContextManager[None]:
        """The function ends inside with an exception."""


class Decisions(Protocol):
    """Decisions on symbolic values, as far as values know of them."""

    depth: int
    in_loop: int
    truths: Dict[Value, Any]
    path: Any

    @property
    def choices(self) -> Choices:
        """Which Variables decisions choose between."""

    def settled(self, predicate: Value) -> bool:
        """The truth of a value, for Python itself."""

    def is_inexact(self, value: Any) -> bool:
        """Whether only the truth of a value is known."""

    def need_exact(self, item: Any) -> None:
        """Stop where more is needed than the truth of what ``and`` or ``or`` gave."""

    def either(self, test: Any, first: Any, second: Any) -> Any:
        """One of two arrays that are there already."""

    def region(self) -> ContextManager[List[Node]]:
        """Nodes made inside go into a region."""


class Crossings(Protocol):
    """Gradients that may lead through earlier iterations of a loop."""

    def check_loop(self, pairs: Sequence[Tuple[Value, Value]], body: Sequence[Node], initial: Mapping[Value, Value],
                   after: Mapping[Value, Value]) -> None:
        """Stop unless the second Variable of each pair is new in every iteration, and the first is not computed from it."""


class Unchaining(Protocol):
    """Variables that lose their creators."""

    def unchain(self, variable: SymbolicVariable) -> None:
        """`Variable.unchain`."""

    def unchain_backward(self, variable: SymbolicVariable) -> None:
        """`Variable.unchain_backward`."""


class Gradients(Protocol):
    """Gradients that the function itself asks for.  taken: how often.  crossings: whether they stay in an iteration."""

    taken: int

    @property
    def crossings(self) -> Crossings:
        """Gradients that may lead through earlier iterations."""

    @property
    def unchaining(self) -> Unchaining:
        """Variables that lose their creators."""

    def note(self, variable: SymbolicVariable) -> None:
        """Know a new Variable."""

    def backward(self, variable: SymbolicVariable, retain_grad: Any = False, enable_double_backprop: Any = False,
                 loss_scale: Any = None) -> None:
        """`Variable.backward`."""

    def creator(self, variable: SymbolicVariable) -> None:
        """`Variable.creator`, where that is None."""


class GradientState(Protocol):
    """The gradients that Variables keep."""

    def shown(self, variable: SymbolicVariable) -> Optional[SymbolicVariable]:
        """``variable.grad_var`` as the user reads it, who may keep it."""

    def array(self, variable: SymbolicVariable) -> Optional[SymbolicArray]:
        """``variable.grad``."""

    def loss_scale(self, variable: SymbolicVariable) -> Any:
        """The loss scale that `backward` left at a Variable."""

    def assign(self, variable: SymbolicVariable, name: str, item: Any) -> None:
        """``variable.grad = item`` or ``variable.grad_var = item``."""

    @property
    def places(self) -> Iterable[KeptGradient]:
        """The gradients of the user's Variables."""

    def set(self, variable: SymbolicVariable, gradient: Optional[SymbolicVariable], cleared: bool = False) -> None:
        """Let a Variable keep this gradient."""

    def zero(self, variable: SymbolicVariable) -> None:
        """``variable.zerograd()``."""

    def join(self, made: SymbolicVariable, sides: Sequence[SymbolicVariable], known: bool = True) -> None:
        """Note that a Variable is one of several, by a decision."""


class ReboundArrays(Protocol):
    """Variables that are given another array."""

    def assign(self, variable: SymbolicVariable, name: str, item: Any) -> None:
        """``variable.array = item``."""


class MadeParameters(Protocol):
    """Parameters that are made inside."""

    def copied(self, variable: Any, deep: bool) -> Any:
        """A copy of a Parameter."""


class IndexRanges(Protocol):
    """What is known of indices."""

    places: Dict[Value, Any]
    least: Dict[Value, Any]
    reaching: Set[Value]

    def is_place(self, value: Value, below: Any) -> None:
        """A number counts the iterations of a loop."""


class AssignedItems(Protocol):
    """Items of lists that are assigned at places that only the run knows."""

    def get(self, items: Any, index: Any) -> Any:
        """An item; NotImplemented where that is left to Python."""

    def put(self, items: Any, index: Any, item: Any) -> bool:
        """Assign an item; False where that is left to Python."""

    def settle_all(self) -> None:
        """What is in the lists is read."""


class DecidingContents(Protocol):
    """What decides something.  exposures: how many calls of unknown code there were, which may write into arrays."""

    exposures: int

    def needed(self, number: Any) -> None:
        """Python needs this number, or this array."""

    def sizes(self, *numbers: Any) -> None:
        """These values decide a size."""

    def decides(self, number: Any) -> None:
        """This value decides what is done."""


class ValueNumbering(Protocol):
    """Calls that give what an earlier call gave."""

    def first(self, value: Value) -> Value:
        """The first value that is the same as this one."""


class CaptureContext(Protocol):
    """One symbolic run.

    builder: takes new nodes; root: that of the whole graph.  known: what values hold that are static.  dimensions: of numbers
    that are sizes, which; sizes_of: of arrays.  failed: why the capture stops.  forks: how many blocks were captured anew.
    rolls, rolled: whether iterations may become a loop of the graph, and whether that was tried.  is_inner: see `Capture`.
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
