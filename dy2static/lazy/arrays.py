"""`LazyArray`: an array whose operations build an expression, which is computed when somebody looks."""
from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import numpy as np

from .calls import Unsupported, call_of
from .evaluation import evaluate_nodes, result_of
from .functions import FUNCTIONS, METHODS
from .nodes import NUMBERS, Node, call_node, leaf
from .ownership import owned
from .shapes import type_of

_frame = sys._getframe
_new = object.__new__

#: An expression this deep is computed before more is built upon it.
MOST_DEPTH = 128


class LazyArray:
    """An array that is computed when somebody looks: see `dy2static.lazy.array`, which makes one."""

    __slots__ = ("_node", "__weakref__")

    _node: Node
    __array_priority__ = 1000.0
    __hash__ = None                                     # type: ignore[assignment]

    def __init__(self) -> None:
        raise TypeError("lazy.array makes lazy arrays")

    # --- building ---------------------------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        frame = _frame(1)
        if method == "__call__" and not kwargs and ufunc.nout == 1:
            args = []
            for item in inputs:
                kind = type(item)
                if kind is LazyArray:
                    args.append(item._node)
                elif kind in NUMBERS:
                    args.append(item)
                else:
                    made = operand(item)
                    if made is None:
                        return NotImplemented
                    args.append(made)
            return _array(call_node(ufunc, tuple(args), frame))
        return called(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs, frame, method != "at")

    def __array_function__(self, function: Callable[..., Any], kinds: Any, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        return called(function, args, kwargs, _frame(1), function in FUNCTIONS)

    def __getitem__(self, index: Any) -> "LazyArray":
        node = self._node
        if node.result is not None and is_basic(index):
            return _array(leaf(node.result[index]))
        return _method("__getitem__", (self, index), {}, _frame(1))

    # --- looking ----------------------------------------------------------------------------------------------------------------

    def evaluate(self) -> Any:
        """The array that this is, or the NumPy scalar: computed now if it has not been.  Nobody can write to the array.

        Raises what NumPy raises for the operations, with the line that built the failing one.
        """
        result = result_of(self._node)
        return read_only(result) if isinstance(result, np.ndarray) else result

    @property
    def is_evaluated(self) -> bool:
        """Whether the values are there."""
        return self._node.result is not None

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        result = np.asarray(self.evaluate())
        if dtype is not None and result.dtype != dtype:
            if copy is False:
                raise ValueError("Unable to avoid copy while creating an array as requested.")
            return result.astype(dtype)
        return result.copy() if copy else result

    def __repr__(self) -> str:
        return repr(self.evaluate())

    def __str__(self) -> str:
        return str(self.evaluate())

    def __format__(self, spec: str) -> str:
        return format(self.evaluate(), spec)

    def __bool__(self) -> bool:
        return bool(self.evaluate())

    def __float__(self) -> float:
        return float(self.evaluate())

    def __int__(self) -> int:
        return int(self.evaluate())

    def __complex__(self) -> complex:
        return complex(self.evaluate())

    def __index__(self) -> int:
        return self.evaluate().__index__()              # type: ignore[no-any-return]

    def __contains__(self, item: Any) -> bool:
        return item in self.evaluate()

    def __iter__(self) -> Iterator["LazyArray"]:
        return iter([_array(leaf(item)) for item in result_of(self._node)])

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("len() of unsized object")
        return shape[0]

    def __reduce__(self) -> Any:
        return _restored, (np.array(self.evaluate()) if self.ndim else self.evaluate(),)

    def __copy__(self) -> "LazyArray":
        return _array(self._node)

    def __deepcopy__(self, memo: Any) -> "LazyArray":
        return _array(self._node)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return np.array(self.evaluate()).__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return 1, 0

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(np.asarray(self.evaluate()))

    def tolist(self) -> Any:
        """The values as Python's numbers, in lists."""
        return self.evaluate().tolist()

    def item(self, *index: Any) -> Any:
        """One value as a number of Python's."""
        return self.evaluate().item(*index)

    def tobytes(self, order: str = "C") -> bytes:
        """The values as bytes."""
        return self.evaluate().tobytes(order)           # type: ignore[no-any-return]

    # --- types ------------------------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Tuple[int, ...]:
        """The sizes of the axes.  Nothing is computed for it where the operations tell."""
        return type_of(self._node)[0]

    @property
    def dtype(self) -> np.dtype:
        """The dtype, as the NumPy that runs has it."""
        return type_of(self._node)[1]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(type_of(self._node)[0])

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(type_of(self._node)[0], dtype=int))

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def T(self) -> "LazyArray":
        """The array with its axes reversed."""
        return _seen_otherwise(self, "{}.T", "T", _frame(1))

    @property
    def mT(self) -> "LazyArray":
        """The array with its last two axes exchanged."""
        return _method("swapaxes", (self, -1, -2), {}, _frame(1))

    @property
    def real(self) -> "LazyArray":
        """The real parts."""
        return _seen_otherwise(self, "{}.real", "real", _frame(1))

    @property
    def imag(self) -> "LazyArray":
        """The imaginary parts."""
        return _seen_otherwise(self, "{}.imag", "imag", _frame(1))


def _array(node: Node) -> LazyArray:
    """The lazy array of a node; a deep one is computed."""
    if node.depth > MOST_DEPTH:
        evaluate_nodes((node,))
    made = _new(LazyArray)
    made._node = node
    return made


def array_of(result: Any) -> LazyArray:
    """The lazy array of values that are there, and that nobody changes."""
    made = _new(LazyArray)
    made._node = leaf(result)
    return made


def _restored(values: Any) -> LazyArray:
    return array_of(values)


def read_only(result: np.ndarray) -> np.ndarray:
    """A view of an array that nobody can write to."""
    view = result.view()
    view.flags.writeable = False
    return view


def operand(item: Any) -> Any:
    """What stands for a value in an expression: a node or a number; None of what cannot."""
    if type(item) is LazyArray:
        return item._node
    if type(item) in NUMBERS or isinstance(item, np.generic):
        return item
    if type(item) is np.ndarray:
        return leaf(owned(item, None, sys.maxsize))
    if isinstance(item, np.ma.MaskedArray):
        return None
    if isinstance(item, (np.ndarray, list, tuple)):
        return leaf(np.array(item))
    return None


def _node_of(item: Any) -> Optional[Node]:
    if type(item) is LazyArray:
        return item._node
    return leaf(owned(item, None, sys.maxsize)) if type(item) is np.ndarray else None


def is_basic(index: Any) -> bool:
    """Whether an index chooses without arrays, so that NumPy gives a view."""
    if type(index) is tuple:
        return all([type(part) in _BASIC for part in index])
    return type(index) in _BASIC


_BASIC = frozenset({int, slice, type(None), type(Ellipsis)})


def called(function: Any, args: Tuple, kwargs: Dict[str, Any], frame: Any, is_lazy: bool) -> Any:
    """The lazy result of a call of a function of NumPy's; what enters no expression is called at once."""
    if is_lazy and not any(kwargs.get(name) is not None for name in ("out",)) and not _gives_several(function):
        try:
            call, operands = call_of(function, args, kwargs, _node_of)
            return _array(call_node(call, operands, frame))
        except Unsupported:
            pass
    return _wrapped(function(*_values(args), **_values(kwargs)))


def _gives_several(function: Any) -> bool:
    return isinstance(function, np.ufunc) and function.nout > 1


def _method(name: str, args: Tuple, kwargs: Dict[str, Any], frame: Any) -> Any:
    """The lazy result of a method; one whose arguments enter no expression is called at once."""
    try:
        call, operands = call_of(name, args, kwargs, _node_of, is_method=True)
        return _array(call_node(call, operands, frame))
    except Unsupported:
        first, *rest = _values(args)
        return _wrapped(getattr(first, name)(*rest, **_values(kwargs)))


def _seen_otherwise(array: LazyArray, text: str, name: str, frame: Any) -> LazyArray:
    """An attribute that is a view: at once of values that are there."""
    result = array._node.result
    return _array(call_node(text, (array._node,), frame) if result is None else leaf(getattr(result, name)))


def _values(item: Any) -> Any:
    """Arguments with the values of lazy arrays in their places."""
    kind = type(item)
    if kind is LazyArray:
        return item.evaluate()
    if kind in (tuple, list):
        return kind([_values(part) for part in item])
    if kind is dict:
        return {name: _values(part) for name, part in item.items()}
    if kind is slice:
        return slice(_values(item.start), _values(item.stop), _values(item.step))
    return item


def _wrapped(found: Any) -> Any:
    """What a call gave with lazy arrays in place of arrays."""
    if isinstance(found, (np.ndarray, np.generic)) and not isinstance(found, (np.ma.MaskedArray, np.bool_)):
        return array_of(np.asarray(found) if isinstance(found, np.ndarray) else found)
    if type(found) in (tuple, list):
        return type(found)([_wrapped(part) for part in found])
    if isinstance(found, tuple) and hasattr(found, "_make"):
        return found._make([_wrapped(part) for part in found])
    return found


# --- operators and methods, from tables -----------------------------------------------------------------------------------------

def _binary(text: str) -> Callable[[LazyArray, Any], Any]:
    def method(self: LazyArray, other: Any) -> Any:
        left = self._node
        kind = type(other)
        node = _new(Node)
        depth = left.depth
        if kind is LazyArray:
            other = other._node
            if other.depth > depth:
                depth = other.depth
        elif kind not in NUMBERS:
            other = operand(other)
            if other is None:
                return NotImplemented
        frame = _frame(1)
        node.op, node.args, node.code, node.last, node.depth = text, (left, other), frame.f_code, frame.f_lasti, depth + 1
        node.result = node.type = None
        if depth >= MOST_DEPTH:
            evaluate_nodes((node,))
        made = _new(LazyArray)
        made._node = node
        return made
    return method


def _reflected(text: str) -> Callable[[LazyArray, Any], Any]:
    def method(self: LazyArray, other: Any) -> Any:
        first = operand(other)
        if first is None:
            return NotImplemented
        return _array(call_node(text, (first, self._node), _frame(1)))
    return method


def _unary(text: str) -> Callable[[LazyArray], Any]:
    def method(self: LazyArray) -> Any:
        return _array(call_node(text, (self._node,), _frame(1)))
    return method


def _named_method(name: str) -> Callable[..., Any]:
    def method(self: LazyArray, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("out") is not None:
            return _wrapped(getattr(self.evaluate(), name)(*_values(args), **_values(kwargs)))
        return _method(name, (self, *args), kwargs, _frame(1))
    method.__name__ = name
    method.__doc__ = f"As ``numpy.ndarray.{name}``, lazily."
    return method


_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
               "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def _install() -> None:
    for name, sign in _ARITHMETIC.items():
        setattr(LazyArray, f"__{name}__", _binary("{} %s {}" % sign))
        setattr(LazyArray, f"__r{name}__", _reflected("{} %s {}" % sign))
    for name, sign in _COMPARISONS.items():
        setattr(LazyArray, f"__{name}__", _binary("{} %s {}" % sign))
    for name, text in (("neg", "-{}"), ("pos", "+{}"), ("invert", "~{}"), ("abs", "abs({})")):
        setattr(LazyArray, f"__{name}__", _unary(text))
    for name in METHODS:
        setattr(LazyArray, name, _named_method(name))


_install()
