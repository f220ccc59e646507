"""What the parts of a capture ask of those that make calls, and know where these run."""
from __future__ import annotations

import types
from typing import Any, Callable, ContextManager, Dict, Iterable, List, Mapping, Optional, Protocol, Sequence, Tuple

from ...capture_context import calls
from ...ir.graph import Value
from ...ir.types import Type
from ...runtime.observed import Observed, Untouched
from ...symbolic.values import SymbolicArray


class ChainerCalls(calls.ChainerCalls, Protocol):
    """The functions of Chainer that one capture applies.  applied: how many."""

    def changed_config(self) -> Dict[str, Any]:
        """Entries of ``chainer.config`` that differ from those at the start of the call."""

    def is_altered(self, cls: type) -> bool:
        """Whether a method of a function of Chainer's was replaced by somebody else's."""

    def leaf(self, array: SymbolicArray, requires_grad: bool) -> SymbolicArray:
        """What a Variable holds to which user code assigns an array, or of which it assigns the gradient: a leaf, too."""


class HostCalls(calls.HostCalls, Protocol):
    """The calls of one capture that are left to the host.  sets_levels: one of them may change the level of a logger."""

    sets_levels: bool

    def made_error(self, error: BaseException, parts: Tuple) -> Value:
        """An exception of these parts as a value of the graph."""

    def under_config(self, within: Any) -> Any:
        """How a host call is made, with the entries of ``chainer.config`` that are set around it in the function."""


class HostResults(Protocol):
    """Of one capture: which host calls gave something of which only a run can tell what it is."""

    codes: List[types.CodeType]

    def seen(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], name: str,
             pure: bool) -> Tuple[Optional[Observed], Optional[Untouched]]:
        """How the result of this host call is unpacked, and what checks that the Variables it gets stay as they are."""


class Placement(Protocol):
    """Where the arrays of one capture are."""

    device: str

    def called_on(self, device: str) -> None:
        """Stop the capture where CuPy is called on arrays of another device than the current one, but for functions of Chainer."""

    def calling(self) -> ContextManager[None]:
        """In its block, what NumPy is asked for is a call of the library of the device."""

    def dispatched(self, function: Callable[..., Any], shown: str) -> None:
        """Stop the capture if NumPy itself is called on arrays of a GPU, and does not leave them to CuPy: `np.asarray` does not."""

    def entered(self, device: str) -> str:
        """The device of an array of the caller's in the graph.  Stops the capture if it was not captured for that."""

    def function(self, function: Callable[..., Any], shown: str, device: str) -> Callable[..., Any]:
        """What a run calls for a function of NumPy on arrays of a device.  Stops the capture if there is no such function."""

    def got(self, array: SymbolicArray, *args: Any, **kwargs: Any) -> SymbolicArray:
        """``array.get()`` of an array on a GPU: what waits for the device in eager mode does so at every run."""

    def inside(self, device: str) -> ContextManager[None]:
        """In its block, a function of Chainer on arrays of this device computes: it makes a GPU the current one itself."""

    def of_call(self, operands: Sequence[Value]) -> str:
        """The device of what a call on arrays gives.  Stops the capture if they are on several."""

    def on_current(self) -> str:
        """The current GPU.  From now on, a guard checks that later calls begin with the same one."""

    def sent(self, array: SymbolicArray, device: str) -> SymbolicArray:
        """An array on a device, where it stays the same array if it is there already."""

    def types(self, found: Sequence[Type], operands: Sequence[Any], tried: Sequence[Any], device: str) -> Tuple[Type, ...]:
        """The types of what a call gives, learned on the host: on a GPU, NumPy's scalars are arrays without axes."""

    def typing(self, function: Callable[..., Any], types: Sequence[Any], device: str) -> Sequence[Any]:
        """The types of the operands that NumPy is tried with."""

    def written(self, function: Callable[..., Any], args: Tuple[Any, ...], shown: str, device: str) -> Tuple[Any, ...]:
        """The arguments of a call, in which the function that writes into an array on a GPU is that of CuPy."""


class BuiltinCalls(Protocol):
    """The calls of builtin functions and methods in one capture."""

    def text(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Run a method of a text, or a function of texts; symbolic operands make a symbolic text."""

    def write_attribute(self, function: Callable, item: Any, *rest: Any) -> Any:
        """``setattr`` and ``delattr``."""

    def sort(self, method: Callable, *args: Any, **kwargs: Any) -> Any:
        """``sort`` of one of our lists, or of an array: Python calls the key, which must be what the capture would call."""

    def of_object(self, function: Callable, *args: Any) -> Any:
        """``object.__getattribute__``, ``__setattr__`` or ``__delattr__`` of it, also through ``super()``."""

    def of_class(self, function: Callable, *args: Any) -> Any:
        """A method of numbers that is called through their class (``int.bit_length(n)``)."""

    def inspect(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """A question about what kind of object something is: not answered for what only the host knows."""

    def hash(self, item: Any) -> int:
        """``hash(item)``, which may be that of the very object."""

    def callee(self, function: Any) -> Callable[..., Any]:
        """What to call for a builtin function or method."""


class NumberCalls(Protocol):
    """Calls of builtins on numbers."""

    def range(self, *bounds: Any) -> Any:
        """Run ``range``; bounds that only the graph knows make a `Range`."""

    def ordered(self, function: Callable, items: Iterable[Any], **kwargs: Any) -> Any:
        """``sorted``: of numbers of one type, or of tuples of such, part of the graph."""

    def of_truths(self, function: Callable, items: Any) -> Any:
        """``any`` and ``all``: of an array, or of a list of numbers, part of the graph."""

    def of_numbers(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Run a function of numbers, in the graph where one is symbolic."""

    def extreme(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """``max`` and ``min``: of numbers of one type, or of tuples of such, part of the graph."""

    def converted(self, cls: type, *args: Any, **kwargs: Any) -> Any:
        """Run int, float or bool."""


class Draws(Protocol):
    """Draws from the two global generators, and from those of the user's."""

    def draw(self, function: Callable, generator: Callable, *args: Any, **kwargs: Any) -> Any:
        """A draw from one of the two global generators: typed by the same draw from another one."""

    def draw_on_gpu(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """A draw from the generator of CuPy: typed by the same draw from one of NumPy's."""


class Classes(Protocol):
    """Calls of classes."""

    def callee(self, cls: type) -> Callable:
        """What to call in place of a class."""
