"""`LazyArray`: an array whose operations build an expression, which is computed when its values are needed."""
from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, Tuple

import numpy as np

from ..runtime import hooks
from .depth import MOST_DEPTH, keep_shallow
from .evaluation import result_of
from .nodes import TRACED, Node, leaf
from .shapes import type_of
from .sites import caller_at_line

if TYPE_CHECKING:
    from .typed import Operators as _Base  # which other modules put into the class
else:
    _Base = object

_new = object.__new__


class LazyArray(_Base):
    """An array that is computed when its values are needed: see `dy2static.lazy.array`, which makes one.

    Its operators, methods and NumPy's protocols are defined in `operators` and `protocols`.
    """

    __slots__ = ("_node", "_view", "__weakref__")

    _node: Node
    _view: Any                                          # a `views.View`; None of an array that sees no other
    __array_priority__ = 1000.0

    def __init__(self) -> None:
        raise TypeError("lazy.array makes lazy arrays")

    @property
    def _now(self) -> Node:
        """The node of the value that the array has now."""
        view = self._view                               # once: another thread may find out that it is none
        return self._node if view is None else view.refreshed(self)     # type: ignore[no-any-return]

    # --- looking ----------------------------------------------------------------------------------------------------------------

    def evaluate(self) -> Any:
        """The array that this is, or the NumPy scalar: computed now if it has not been.  The array is read-only.

        Raises what NumPy raises for the operations, with the line that built the failing one.
        """
        result = result_of(self._now)
        return read_only(result) if isinstance(result, np.ndarray) else result

    @property
    def is_evaluated(self) -> bool:
        """Whether the values are there."""
        return self._now.result is not None

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        result = np.asarray(self.evaluate())
        if dtype is not None and result.dtype != dtype:
            if copy is False:
                raise ValueError("Unable to avoid copy while creating an array as requested.")
            converted: np.ndarray = caller_at_line(sys._getframe(1))(np.ndarray.astype, (result, dtype), {})
            return converted
        return result.copy() if copy else result

    def __repr__(self) -> str:
        return repr(result_of(self._now))

    def __str__(self) -> str:
        return str(result_of(self._now))

    def __format__(self, spec: str) -> str:
        return format(result_of(self._now), spec)

    def __bool__(self) -> bool:
        return bool(result_of(self._now))

    def __float__(self) -> float:
        return _number(float, self, sys._getframe(1))   # type: ignore[no-any-return]

    def __int__(self) -> int:
        return _number(int, self, sys._getframe(1))     # type: ignore[no-any-return]

    def __complex__(self) -> complex:
        return _number(complex, self, sys._getframe(1))     # type: ignore[no-any-return]

    def __index__(self) -> int:
        value = result_of(self._now)
        if value.dtype == bool:                         # NumPy would take its number for the place of a row, not for a mask
            raise TypeError("a lazy bool is no index: write int(y), or numpy.asarray(y) for a mask")
        return operator.index(value)

    def __trunc__(self) -> int:
        return _number(int, self, sys._getframe(1))     # type: ignore[no-any-return]

    def __round__(self, digits: Optional[int] = None) -> Any:
        return round(result_of(self._now), digits)

    def __hash__(self) -> int:
        value = result_of(self._now)
        if isinstance(value, np.ndarray):
            raise TypeError("unhashable type: 'LazyArray'")
        return hash(value)                              # of a NumPy scalar, which never changes

    def __contains__(self, item: Any) -> bool:
        return item in result_of(self._now)

    def __iter__(self) -> Iterator["LazyArray"]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        result_of(self._now)
        return map(self.__getitem__, range(len(self)))  # type: ignore[attr-defined] # each as it is when its turn comes

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("len() of unsized object")
        return shape[0]

    def __reduce__(self) -> Any:
        return array_of, (np.array(self.evaluate()) if isinstance(result_of(self._now), np.ndarray) else self.evaluate(),)

    def __copy__(self) -> "LazyArray":
        return array_of_node(self._now)

    def __deepcopy__(self, memo: Any) -> "LazyArray":
        return array_of_node(self._now)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return np.array(self.evaluate()).__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return 1, 0

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(np.asarray(self.evaluate()))

    @property
    def __chainer_array__(self) -> np.ndarray:
        """The array that Chainer's functions take for it; Variables take a copy (`dy2static.compat.patches`)."""
        return np.asarray(self.evaluate())

    def tolist(self) -> Any:
        """The values as Python's numbers, in lists."""
        return result_of(self._now).tolist()

    def item(self, *index: Any) -> Any:
        """One value as a number of Python's."""
        return result_of(self._now).item(*index)

    def tobytes(self, order: str = "C") -> bytes:
        """The values as bytes."""
        return result_of(self._now).tobytes(order)           # type: ignore[no-any-return]

    # --- types ------------------------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Tuple[int, ...]:
        """The sizes of the axes.  Nothing is computed if the operations determine them."""
        return type_of(self._now)[0]

    @property
    def dtype(self) -> np.dtype:
        """The dtype, as the NumPy that runs has it."""
        return type_of(self._now)[1]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(type_of(self._now)[0])

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(type_of(self._now)[0], dtype=int))

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.size * self.dtype.itemsize


def _number(kind: Callable[[Any], Any], array: LazyArray, frame: Any) -> Any:
    """An array as a number of Python's.  Warnings name the line of the frame."""
    value = result_of(array._now)
    return kind(value) if value.ndim == 0 and value.dtype.kind != "c" else caller_at_line(frame)(kind, (value,), {})


hooks.values[LazyArray] = LazyArray.evaluate


def array_of_node(node: Node) -> LazyArray:
    """The lazy array of a node; a deep one is computed."""
    if MOST_DEPTH < node.depth < TRACED:
        keep_shallow(node)
    made: LazyArray = _new(LazyArray)
    made._node, made._view = node, None
    return made


def array_of_op(op: Any, args: Tuple[Any, ...], frame: Any) -> LazyArray:
    """The lazy array of an operation that is called in a frame: `array_of_node` of `call_node`, in one step."""
    depth = 0
    for arg in args:
        if type(arg) is Node and arg.depth > depth:
            depth = arg.depth
    node: Node = _new(Node)
    node.op, node.args, node.code, node.last, node.depth = op, args, frame.f_code, frame.f_lasti, depth + 1
    node.result = node.type = None
    if MOST_DEPTH <= depth < TRACED:
        keep_shallow(node)
    made: LazyArray = _new(LazyArray)
    made._node, made._view = node, None
    return made


def array_of(result: Any) -> LazyArray:
    """The lazy array of values that exist already and that no other code changes."""
    return array_of_node(leaf(result))


def read_only(result: np.ndarray) -> np.ndarray:
    """A view of an array that is read-only."""
    view = result.view()
    view.setflags(False)
    return view
