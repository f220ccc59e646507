"""How arrays lie in memory, and which of them are one object, the same as in eager mode.

The arrays of a run may lie otherwise.  Arrays of the user's are guarded to lie as they do; what was made of them is made again,
of examples that lie as these.
"""
from __future__ import annotations

import operator
from typing import Any, Dict, Mapping, NoReturn, Sequence, Tuple

import numpy as np

from ..capture_context import CaptureContext
from ..ir.devices import is_gpu
from ..library_facts.by_name import known_as
from ..record.guards import ArrayLayout, DistinctObjects, SameObject
from ..record.paths import Attribute
from . import abstract_eval
from .values import SymbolicArray
from .views import Made, Views, arrays_in, is_arithmetic, sampled

_UNKNOWN = "the memory layout is read of an array that was made by a function of Chainer, a decision or a call that is not compiled"


class Flags:
    """``array.flags``, to be read."""

    _capture: Any = None
    _real: Any = None

    def __init__(self, capture: CaptureContext, real: Any):
        self.__dict__.update(_capture=capture, _real=real)

    @property
    def __class__(self) -> type:
        return type(self._real)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __getitem__(self, name: str) -> bool:
        return self._real[name]

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        self._capture.abort("the flags of an array are changed inside the compiled function")

    def __setitem__(self, name: str, value: Any) -> NoReturn:
        self.__setattr__(name, value)

    def __repr__(self) -> str:
        return repr(self._real)


class Layouts:
    """The examples of one capture."""

    def __init__(self, capture: CaptureContext):
        self.capture = capture
        self._known: Dict[int, Tuple[SymbolicArray, np.ndarray]] = {}
        self._of: Dict[int, Any] = {}                   # by an example, what it stands for

    @property
    def _views(self) -> Views:
        return self.capture.array_writes.views

    def example(self, array: SymbolicArray) -> np.ndarray:
        """An array of other contents that lies in memory as this one does eagerly."""
        if array.is_scalar:
            return abstract_eval.stand_in(array.type, 0)
        if is_gpu(array.place):
            self.capture.abort("the memory layout of an array on a GPU is read")
        self.capture.heap.check_fresh()
        known = self._known.get(id(array))
        if known is None:
            made = self._views.made.get(id(array))
            if made is None or array.choice is not None or made.source is None and made.function is None:
                self.capture.abort(_UNKNOWN)
            found = self._made_again(made) if made.source is None else self._like(made)
            known = self._known[id(array)] = array, found
            self._of.setdefault(id(found), array)
        return known[1]

    def flags(self, array: SymbolicArray) -> Flags:
        """``array.flags``."""
        return Flags(self.capture, self.example(array).flags)

    def is_copy(self, made: Made, operands: Sequence[SymbolicArray]) -> bool:
        """Whether it is relied on that a result shares no memory with the operands, as the caller's arrays lie in this call.

        That is so in a capture that is made again because it was not known which arrays are views.
        """
        if not self._is_known(made.array):
            return False
        self.capture.leaves_layouts = not self.capture.knows_layouts
        if self.capture.leaves_layouts:
            return False
        example = self.example(made.array)
        return not any(np.may_share_memory(example, self.example(x)) for x in operands if not x.is_scalar)

    def _is_known(self, array: SymbolicArray) -> bool:
        """Whether it is known how an array lies in memory: as those of the caller's that it is made of."""
        made = self._views.made.get(id(array))
        if array.is_scalar:
            return True
        if made is None or array.choice is not None or is_gpu(array.place):
            return False
        if made.source is not None:
            return True
        return made.function is not None and all(map(self._is_known, arrays_in((made.args, made.kwargs))))

    def _made_again(self, made: Made) -> np.ndarray:
        values = {id(x): abstract_eval.stand_in(x.type, 0) if x.is_scalar else self.example(x)
                  for x in arrays_in((made.args, made.kwargs))}
        try:
            with np.errstate(all="ignore"):
                result = made.function(*sampled(made.args, values, {}), **sampled(made.kwargs, values, {}))
        except Exception:                       # whatever a call on made-up contents raises
            result = None
        return result if type(result) is np.ndarray else self.capture.abort(_UNKNOWN)

    def _like(self, made: Made) -> np.ndarray:
        """An array that lies as one of the user's, which is relied on."""
        real: np.ndarray = made.real
        for size in made.array.shape:
            operator.index(size)                        # a free size becomes a fixed one
        if real.flags.owndata:
            found = np.empty_like(real, order="K")
        else:
            low = sum((n - 1) * step for n, step in zip(real.shape, real.strides) if step < 0) if real.size else 0
            high = sum((n - 1) * step for n, step in zip(real.shape, real.strides) if step > 0) if real.size else 0
            memory = np.zeros(high - low + real.itemsize, np.uint8)
            found = np.ndarray(real.shape, real.dtype, memory, -low, real.strides)
            self._of[id(memory)] = made
        found.fill(0)
        found.flags.writeable = real.flags.writeable
        if found.strides != real.strides or found.flags.num != real.flags.num:
            self.capture.abort("an array of the caller's lies in memory in an unusual way")
        self.capture.heap.guard(ArrayLayout(made.source, real.strides, real.flags.num))
        return found

    def base(self, array: SymbolicArray) -> Any:
        """``array.base``."""
        example = self.example(array)
        if array.is_scalar:
            return None
        made = self._views.made[id(array)]
        owner = made if made.source is not None and example.base is not None else self._of.get(id(example.base))
        if type(owner) is not Made:
            return owner if example.base is None or owner is not None else self.capture.abort("`.base` of an array is not known")
        if type(owner.real.base) is not np.ndarray:
            self.capture.abort("`.base` of an array is no array")
        return self.capture.heap.shadow(owner.real.base, self.capture.heap.source(Attribute, owner.source, "base"))

    # --- identity -----------------------------------------------------------------------------------------------------

    def is_one(self, first: SymbolicArray, second: SymbolicArray) -> bool:
        """Whether two symbolic arrays are one array."""
        if first.is_scalar or second.is_scalar or first.choice is not None or second.choice is not None:
            self.capture.abort("two arrays are compared by `is`")
        arrays = self._given(first), self._given(second)
        if arrays[0] is arrays[1]:
            return True
        made = [self._views.made.get(id(array)) for array in arrays]
        sources = [None if entry is None else entry.source for entry in made]
        if None in sources:                             # one at least is new
            return False
        is_one = made[0].real is made[1].real
        self.capture.heap.guard(SameObject(*sources) if is_one else DistinctObjects(tuple(sources)))
        return is_one

    def are_given(self, *arrays: SymbolicArray) -> bool:
        """Whether these are arrays of the caller's."""
        return all(made is not None and made.source is not None for made in [self._views.made.get(id(x)) for x in arrays])

    def _given(self, array: SymbolicArray) -> SymbolicArray:
        """The array that a call gave back as its result; the array itself where the call made it."""
        views = self._views
        made = views.made.get(id(array))
        if made is None and id(array) not in views.results:
            self.capture.abort("two arrays are compared by `is`")
        if made is None or made.function is None or is_arithmetic(made.function):
            return array
        operands = arrays_in((made.args, made.kwargs))
        found = views.given_back(made, operands) if operands else [None]
        if found and all(operand is found[0] for operand in found):
            return array if found[0] is None else self._given(found[0])
        example = self.example(array)                   # it depends on how they lie
        return next((self._given(x) for x in operands if not x.is_scalar and self.example(x) is example), array)


class Unordered:
    """Calls of NumPy that go by how an array lies in memory, where the array of a run may lie otherwise than eagerly."""

    NAMES = known_as("memory") | {"as_strided"}

    def __init__(self, capture: CaptureContext):
        self.capture = capture

    def ordered(self, name: str, args: Tuple, kwargs: Mapping[str, Any]) -> Tuple[Tuple, Mapping[str, Any]]:
        """The arguments, in which the order "C" or "F" stands for "K" and "A"."""
        array = args[0] if args else next(iter(kwargs.values()), None)
        if type(array) is not SymbolicArray:
            return args, kwargs
        if name in ("as_strided", "frombuffer"):
            self._check(name, array)
            return args, kwargs
        if not any(type(x) is str and x in ("K", "A", "k", "a") for x in (*args[1:], *kwargs.values())):
            return args, kwargs
        flags = self.capture.array_writes.layouts.example(array).flags

        def known(item: Any) -> Any:
            if type(item) is not str or item.upper() not in ("K", "A"):
                return item
            if item.upper() == "K" and not flags.forc:
                self.capture.abort("the items of an array are taken in the order in which they lie in memory")
            return "F" if flags.fnc else "C"
        return (*args[:1], *map(known, args[1:])), {key: known(item) for key, item in kwargs.items()}

    def _check(self, name: str, array: SymbolicArray) -> None:
        flags = self.capture.array_writes.layouts.example(array).flags
        made = self.capture.array_writes.views.made.get(id(array))
        if made is None or made.source is None or array.memory is not None or name == "frombuffer" and not flags.c_contiguous:
            self.capture.abort(f"`np.{name}` depends on the memory layout of an array that is made in the compiled function")
