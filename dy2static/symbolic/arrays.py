"""Arrays and numbers of a graph: what user code meets instead of arrays and of Python's numbers while a capture runs."""
from __future__ import annotations

import operator
import types
from typing import Any, Callable, Iterator, Optional, Tuple

import chainer
import numpy as np

from ..capture_context import CaptureContext
from ..heap.stand_ins import name_in_messages, stands_for
from ..ir.devices import is_gpu
from ..ir.graph import Value
from ..ir.types import PYTHON_TYPES, Scalar, Tensor
from ..library_facts import numpy as numpy_facts
from ..library_facts.table import named
from ..runtime.array_parts import set_flat
from ..runtime.devices import array_type, chainer_device
from .buffers import Buffer
from .elements import Elements, Flat, fill
from .operators import give_array_operators, give_number_operators
from .sizes import sizes

#: ndarray methods that write into the array; everything else goes through `NumPyCalls.call`.
_WRITING, _UNREADABLE = named("changes", numpy_facts.METHODS), numpy_facts.HIDDEN


def as_index(key: Any) -> Any:
    """Arrays for lists of whole numbers of which only the run knows how many there are; anything else as it is."""
    if type(key) is tuple:
        return tuple(map(as_index, key))
    items = getattr(key, "symbolic", None) if isinstance(key, list) else None
    return key if items is None or items.kind != "py_int" or items.arrays is None else items.arrays(None)


class SymbolicArray:
    """An ndarray (or NumPy scalar, by its type) of a graph: knows shape and dtype, not contents.

    memory: what it shares with its views, once one of them is written; steps: how it is made from the whole of it;
    seen, where: for which contents, and in which region, its value was made.  shared: None, "kept" if something else may
    hold it by now, "held" if only a Variable does that no function has read, "retained" if a backward may read it.
    choice: where it is that of a Variable which a decision chose among others, as `choices.Choice`.
    """

    __slots__ = ("capture", "_value", "memory", "steps", "seen", "where", "shared", "choice", "__weakref__")
    __array_priority__ = 150

    def __init__(self, capture: CaptureContext, value: Value):
        self.capture, self._value = capture, value
        self.memory = self.steps = self.seen = self.where = self.shared = self.choice = None

    @property
    def value(self) -> Value:
        """What it holds now, for one who keeps it: from then on the array is not written."""
        self.shared = "kept"
        if self.memory is not None:
            self.capture.array_writes.by_reference(self)
        return self.now()

    def now(self) -> Value:
        """What it holds now, for one who only reads it."""
        return self._value if self.memory is None else self.capture.array_writes.read(self)

    @property
    def type(self) -> Any:
        """The `Tensor` type of the array."""
        return self._value.type

    @property
    def is_scalar(self) -> bool:
        """Whether this is a NumPy scalar, not an array."""
        return isinstance(self._value.type, Scalar)

    @property
    def shape(self) -> Tuple[int, ...]:
        return sizes(self.capture, self._value.type.shape)

    @property
    def dtype(self) -> np.dtype:
        return self._value.type.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return sizes(self.capture, (Tensor(self._value.type.shape, self.dtype).size,))[0]

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def __class__(self) -> type:
        return self.dtype.type if self.is_scalar else array_type(self.place) if is_gpu(self.place) else np.ndarray

    @property
    def device(self) -> Any:
        """That of an array on a GPU, as CuPy has it; of others, what NumPy says, which depends on its version."""
        return chainer_device(self.place).device if is_gpu(self.place) else self.__getattr__("device")

    @property
    def place(self) -> str:
        """The device in the graph; "" of a NumPy scalar, and where all arrays are NumPy's."""
        return getattr(self._value.type, "device", "")

    @property
    def flat(self) -> Flat:
        return Flat(self)

    @flat.setter
    def flat(self, items: Any) -> None:
        fill(self, set_flat, items)

    @property
    def data(self) -> Buffer:
        return Buffer(self)

    @property
    def flags(self) -> Any:
        return self.capture.array_writes.layouts.flags(self)

    @property
    def strides(self) -> Tuple[int, ...]:
        return self.capture.array_writes.layouts.example(self).strides

    @property
    def base(self) -> Any:
        return self.capture.array_writes.layouts.base(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"object of type '{name_in_messages(self.dtype.type)}' has no len()" if self.is_scalar else
                            "len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError(f"'{name_in_messages(self.dtype.type)}' object is not iterable" if self.is_scalar else
                            "iteration over a 0-d array")
        return Elements(self, operator.index(self.shape[0]), self.__getitem__)

    def __getitem__(self, key: Any) -> Any:
        return self.capture.numpy.call(operator.getitem, (self, as_index(key)), {})

    def __round__(self, *digits: Any) -> Any:
        return self.capture.numpy.call(round, (self, *digits), {})

    def __divmod__(self, other: Any) -> Any:
        return self.capture.numpy.call(divmod, (self, other), {})

    def __rdivmod__(self, other: Any) -> Any:
        return self.capture.numpy.call(divmod, (other, self), {})

    def __setitem__(self, key: Any, item: Any) -> None:
        self.capture.array_writes.write(self, operator.setitem, (key, item), {})

    def __getattr__(self, name: str) -> Any:
        if is_gpu(self.place):
            if name == "get":
                return ArrayMethod(self, name)
            if not hasattr(array_type(self.place), name):
                raise AttributeError(f"'cupy.ndarray' object has no attribute {name!r}")
            if not hasattr(np.ndarray, name):
                self.capture.abort(f"`.{name}` of an array is used inside the compiled function")
        if name in _UNREADABLE or name in _WRITING or not hasattr(np.ndarray, name):
            if not name.startswith("__") and hasattr(np.ndarray, name):
                self.capture.abort(f"`.{name}` of an array is used inside the compiled function")
            raise AttributeError(f"'{name_in_messages(self.__class__)}' object has no attribute {name!r}")
        if callable(getattr(np.ndarray, name)):
            return ArrayMethod(self, name)
        if name == "real" and not self.is_scalar and self.dtype.kind != "c":
            return self                                 # NumPy, too, gives the array itself
        return self.capture.numpy.call(("attribute", name), (self,), {})

    def __setattr__(self, name: str, item: Any) -> None:
        if not hasattr(SymbolicArray, name):
            setattr(self._like(), name, item)           # raises what Python says, which depends on its version
        object.__setattr__(self, name, item)

    def __delattr__(self, name: str) -> None:
        if not hasattr(SymbolicArray, name):
            delattr(self._like(), name)
        object.__delattr__(self, name)

    def _like(self) -> Any:
        """A NumPy scalar or an array of the kind that this stands for."""
        return self.dtype.type() if self.is_scalar else np.empty(0)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, chainer.Variable) for x in inputs):
            return NotImplemented
        return self.capture.numpy.call(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, function: Callable, types: Any, args: Any, kwargs: Any) -> Any:
        return self.capture.numpy.call(function, args, kwargs)

    def contents(self) -> Any:
        """What the array holds, where that is static; stops the capture otherwise."""
        known = self.capture.known.get(self.now())
        if known is None:
            self.capture.deciding.needed(self)
            self.capture.abort_decision()
        return known

    def __copy__(self) -> Any:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: Any) -> Any:
        layouts, together = self.capture.array_writes.layouts, memo.setdefault(SymbolicArray, [])
        for other, copied in together:                  # the caller's arrays: one that is in two places has one copy
            if layouts.are_given(self, other) and layouts.is_one(self, other):
                return copied
        together.append((self, ArrayMethod(self, "__deepcopy__")({})))
        return together[-1][1]

    def __hash__(self) -> int:
        if not self.is_scalar:
            raise TypeError(f"unhashable type: '{name_in_messages(self.__class__)}'")
        return hash(self.contents())

    def __delitem__(self, key: Any) -> None:
        if self.is_scalar:
            raise TypeError(f"'{name_in_messages(self.dtype.type)}' object does not support item deletion")
        raise ValueError("cannot delete array elements")

    def __bool__(self) -> bool:
        known = self.capture.known.get(self.now())
        if known is None and self.size == 1:
            return self.capture.staging.settled(self.now())
        return bool(self.contents())

    def __index__(self) -> int:
        known = self.capture.known.get(self.now())
        is_whole = known is None and not self.shape and self.dtype.kind in "iu"
        return self.capture.one_of_few(self) if is_whole else operator.index(self.contents())

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return np.array(self.contents(), *args, **{**kwargs, "copy": True})


def _refuse_assignments() -> None:
    """Stop the capture where code assigns what describes an array (``a.shape = ...``), but for ``flat``."""
    for name, found in vars(np.ndarray).items():
        if isinstance(found, types.GetSetDescriptorType) and name != "flat" and not name.startswith("_"):
            def read(self: SymbolicArray, name: str = name) -> Any:
                return self.__getattr__(name)

            def refuse(self: SymbolicArray, _: Any = None, name: str = name) -> None:
                self.capture.abort(f"`.{name}` of an array is assigned inside the compiled function")
            known = vars(SymbolicArray).get(name)
            setattr(SymbolicArray, name, property(read if known is None else known.fget, refuse, refuse))


_refuse_assignments()


class ArrayMethod:
    """A method of a `SymbolicArray` or a `SymbolicScalar`."""

    __slots__ = ("owner", "__name__")

    def __init__(self, owner: Any, name: str):
        self.owner, self.__name__ = owner, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if type(self.owner) is SymbolicScalar and self.owner.text is not None:
            of_type = getattr(self.owner.python_type, self.__name__)
            return self.owner.capture.expressions.function_of_numbers(of_type, (self.owner, *args, *kwargs.values()))
        return self.owner.capture.numpy.call(("method", self.__name__), (self.owner,) + args, kwargs)


#: Methods of Python's numbers that take no arguments.
_QUESTIONS = frozenset(("bit_count", "bit_length", "conjugate", "is_integer"))


class SymbolicScalar:
    """A Python number of a graph: either an expression over numbers the caller passes in (``text``), or a value.

    hint: the number in the call that is being captured; only for expressions.  Where Python needs the number itself
    (``range``, a shape, ``if``) an expression is fixed to it, under a guard.
    """

    __slots__ = ("capture", "kind", "text", "hint", "_value")
    __array_ufunc__ = None                              # NumPy scalars leave operators to this class

    def __init__(self, capture: CaptureContext, kind: str, text: Optional[str] = None, hint: Any = None,
                 value: Optional[Value] = None):
        self.capture, self.kind, self.text, self.hint, self._value = capture, kind, text, hint, value

    @property
    def value(self) -> Value:
        """The number in the graph."""
        self.capture.staging.need_exact(self)
        return self.truth

    @property
    def truth(self) -> Value:
        """What in the graph has the truth of the number, and is the number in most cases: see `Staging.truths`."""
        if self._value is None:
            self._value = self.capture.inputs.number_value(self.text, self.kind, self.hint)
        return self._value

    @property
    def python_type(self) -> type:
        """The type that Python code sees."""
        return PYTHON_TYPES[self.kind]

    @property
    def __class__(self) -> type:
        return self.python_type

    def fix(self) -> Any:
        """The number itself, with a guard; stops the capture where it is not known yet."""
        if self.text is None:
            self.capture.staging.need_exact(self)
            return self.capture.one_of_few(self)
        self.capture.expressions.guard(self.text, self.hint)
        return self.hint

    def __bool__(self) -> bool:
        return self.capture.staging.settled(self.truth) if self.text is None else bool(self != 0)

    def __index__(self) -> int:
        return int(bool(self)) if self.kind == "py_bool" and self.text is None else operator.index(self.fix())

    def __int__(self) -> int:
        return int(self.fix())

    def __float__(self) -> float:
        return float(self.fix())

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return np.array(self.fix(), *args, **{**kwargs, "copy": True})

    def __round__(self, *digits: Any) -> Any:
        return round(self.fix(), *digits) if self.text is not None else self.capture.numpy.call(round, (self, *digits), {})

    def __hash__(self) -> int:
        if self.text is None:                           # as a key, it must be the number itself
            self.capture.deciding.needed(self)
            self.capture.abort_decision()
        return hash(self.fix())

    def __str__(self) -> str:
        return str(self.fix())

    def __repr__(self) -> str:
        return repr(self.fix())

    def __format__(self, spec: str) -> str:
        return format(self.fix(), spec)

    def __copy__(self) -> "SymbolicScalar":
        return self

    def __deepcopy__(self, memo: Any) -> "SymbolicScalar":
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(self.python_type, name):
            raise AttributeError(f"'{self.python_type.__name__}' object has no attribute {name!r}")
        if self.text is not None:
            return ArrayMethod(self, name) if name in _QUESTIONS else self if name == "real" else getattr(self.fix(), name)
        if callable(getattr(self.python_type, name)):
            return ArrayMethod(self, name)
        return self.capture.numpy.call(("attribute", name), (self,), {})


give_array_operators(SymbolicArray)
give_number_operators(SymbolicScalar, SymbolicArray)
stands_for(ArrayMethod, types.BuiltinFunctionType)
stands_for(SymbolicArray, np.ndarray)
