"""What the parts of a capture ask of those that know what leaves it: results, writes, reports, operands of calls."""
from __future__ import annotations

from typing import Any, ContextManager, Dict, Iterable, List, Optional, Protocol, Tuple, Type

from ...capture_context import effects
from ...ir.graph import Value
from ...record.builds import Build
from ...record.paths import Source
from ...record.variables import EscapingVariable
from ...record.writes import Write
from ...symbolic.lists import StagedList
from ...symbolic.values import SymbolicVariable


class Effects(effects.Effects, Protocol):
    """The writes of one capture: stored in the program before something that could look, or fail, and at its end."""

    def outside(self) -> ContextManager[None]:
        """Nodes made inside stand before the outermost decision."""

    def store(self, changes: Iterable[Tuple[Source, Type[Write], Any, Any]]) -> None:
        """Write these changes when the program comes here."""

    def store_writes_before(self, start: int) -> None:
        """Nodes from ``start`` may raise: what was written so far must have happened by then."""


class EnteredReporters(Protocol):
    """The reporters that one capture has entered.  outside: what took reports before the call."""

    @property
    def are_entered(self) -> bool:
        """Whether another reporter takes reports than before the call, or into another dict."""

    def check_host(self, name: str) -> None:
        """Stop before a call of code that may look for the current reporter, which the run does not enter."""

    def left(self) -> ContextManager[None]:
        """In its block, reporters have the observations that they had before their scopes."""

    def report(self, values: Any, observer: Any = None) -> None:
        """``chainer.report`` to a reporter that is entered inside."""


class Escaping(Protocol):
    """The Variables made during one capture that the user can get hold of.  variables: their records, in order."""

    def adopt(self, variable: SymbolicVariable, made: Value) -> None:
        """A Parameter that is made here, as an object of the graph: the user can get hold of it by what keeps it."""

    def cut(self, variable: SymbolicVariable) -> None:
        """Let a Variable that the user can get hold of have no creator when the call is over."""

    def early(self, variable: SymbolicVariable) -> Value:
        """The Variable itself as a value of the graph, for a host call that sees it."""

    def is_known(self, variable: SymbolicVariable) -> bool:
        """Whether the user can get hold of a Variable made here already."""

    def is_only_reported(self, variable: SymbolicVariable) -> bool:
        """Whether nothing but reports, which keep copies without a graph, has got hold of a Variable so far."""

    def record(self, variable: SymbolicVariable) -> EscapingVariable:
        """The record of a Variable made here that the user can get hold of."""


class Materialiser(Protocol):
    """Turns what user code holds at the end of a capture into instructions for making it at every run."""

    built: Dict[int, Tuple[Any, Build]]

    def build(self, item: Any) -> Build:
        """How to make the object at every run."""

    def check_known(self, item: StagedList) -> None:
        """Stop at a list of Variables of which only the run knows the length."""

    def is_changeable(self, item: Any) -> bool:
        """Whether this is a constant of which the user may set attributes once he gets hold of it: an initializer, for example."""

    def is_constant(self, item: Any) -> bool:
        """Whether an object is the same in every call."""


class Operands(effects.Operands, Protocol):
    """The operands of the calls of NumPy, of opaque functions and of host calls in one capture."""

    handed: Dict[int, Any]
    stored: Any
    storing: bool
    takes_errors: bool
    receiver: str

    def copy_of(self, item: Any) -> Optional[Value]:
        """The value of the graph that is an object which is made here, where a host call has got it."""

    def exposes(self, item: Any) -> bool:
        """Whether code that gets this object could change an object of the user's that this capture reads."""

    def hand_over(self, item: Any, operands: List[Value]) -> Any:
        """Like `template`, for the host: it gets real objects, Variables with their identity, and fresh containers."""

    def holds_new_container(self, item: Any) -> bool:
        """Whether the item is, or holds, what was made during the capture and can be changed: a list, dict or set, for example."""

    def holds_symbolic(self, item: Any) -> bool:
        """Whether there is anything symbolic in an attribute of a FunctionNode."""

    def template(self, item: Any, operands: List[Value]) -> Any:
        """The item with a `Hole` for every symbolic value; the values are appended to ``operands``."""


class Reports(effects.Reports, Protocol):
    """The reports of one capture that are certain to do no more than store their values."""

    def apart(self, values: Dict[str, Any], observer: Any = None) -> Tuple[Dict[str, Any], Any]:
        """What a plain report gets: other Variables for leaves that are made here, since it stores copies of them."""

    def is_held(self, values: Dict[str, Any], observer: Any = None) -> bool:
        """Whether a report happens behind the loop that is captured."""

    def is_plain(self, values: Any = None, observer: Any = None, *others: Any) -> bool:
        """Whether a report is such a one, which is then relied on."""

    def mark(self) -> None:
        """What follows in the graph may look, or fail: what is reported before stays before it."""

    def note(self) -> None:
        """Something is reported: what takes it must not be read in the function itself."""


class RuleStates(Protocol):
    """The states of one capture that a call reads for the first time when it updates."""

    def enter(self, rule: Any, parameter: Any) -> None:
        """Let a rule have its state, if that can be told from the Parameter, and nothing has looked for it in this call."""

    def write_of(self, container: Any, kind: Type[Write], item: Any) -> Type[Write]:
        """The kind of a change: `StoreState` if a rule gets the state that it may have already."""
