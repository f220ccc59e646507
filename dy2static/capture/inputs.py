"""What the caller brings, as values of the graph: Variables, arrays, numbers, texts and other objects, with their sources."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence, Tuple, Union
from typing import List as ListOf

import chainer
import numpy as np

from ..heap.naming import readable
from ..ir.devices import device_of, is_gpu, kind_of
from ..ir.dims import Size
from ..ir.graph import Value
from ..ir.types import Dynamic, List, Scalar, Tensor, python_scalar, type_of
from ..record.guards import ArrayMatch, TypeMatch, VariableMatch
from ..record.inputs import ArrayInput, Input, ListInput, NumberInput, ObjectInput, VariableInput
from ..record.paths import ArrayOfSize, Attribute, Source
from ..runtime.devices import COMPILED
from ..runtime.list_arrays import MOST_ELEMENTS, array_of_size
from ..symbolic.host_objects import SymbolicObject
from ..symbolic.known_texts import SymbolicText
from ..symbolic.list_items import KINDS, Items, made_of
from ..symbolic.list_lengths import Length
from ..symbolic.lists import StagedList
from ..symbolic.sizes import sizes
from ..symbolic.uninitialized import UninitializedParameter
from ..symbolic.values import SymbolicArray, SymbolicParameter, SymbolicScalar, SymbolicVariable

if TYPE_CHECKING:
    from .protocols import Capture

#: The hint for arrays that are not compiled.
LAYOUTS = "only arrays of NumPy and CuPy in default layout are compiled; others run eagerly"


class Inputs:
    """The inputs of one capture.

    all: in the order in which they were met.  named: the numbers and texts that expressions name, with their sources.  bound:
    the objects that the generated code names.
    """

    def __init__(self, capture: Capture):
        self.capture = capture
        self.all: ListOf[Input] = []
        self.named: ListOf[Tuple[str, Source]] = []
        self.bound: ListOf[Tuple[str, Any]] = []
        self._objects: Dict[Source, Value] = {}
        self._lists: Dict[Source, Value] = {}
        self._numbers: Dict[str, Value] = {}
        self._of_numpy: Dict[Value, Tuple[str, np.generic]] = {}

    def variable(self, real: chainer.Variable, source: Source) -> SymbolicVariable:
        """The symbolic form of a Variable or Parameter of the user's."""
        if type(real) not in (chainer.Variable, chainer.Parameter):
            self.capture.abort(f"a Variable of type {type(real).__name__}")
        if real.layout is not None:
            self.capture.abort("a Variable with a memory layout of its own", hint=LAYOUTS)
        array = real.array
        if array is None and type(real) is chainer.Parameter:
            self.capture.heap.guard(TypeMatch(source, chainer.Parameter))
            self.capture.heap.objects.rely_on_class(chainer.Parameter, data=True)
            return UninitializedParameter(self.capture, real, source)
        if array is None:
            self.capture.abort("a Variable without an array", again=True)
        device = self._device(array)
        place = self.capture.heap.source(Attribute, source, "array")
        is_fixed = type(real) is chainer.Parameter or self.capture.deciding.is_fixed(place, array)
        shape = self.capture.free_sizes.shape(source, array.shape, is_fixed)
        self.capture.heap.guard(VariableMatch(source, type(real), real.requires_grad, shape, array.dtype, device))
        self.capture.heap.objects.rely_on_class(type(real), data=True)
        value = self._add(VariableInput, Tensor(shape, array.dtype, device), source, real.requires_grad)
        kind = SymbolicParameter if type(real) is chainer.Parameter else SymbolicVariable
        if not is_gpu(device):
            self.capture.index_ranges.entered(value, source, array)
            self.capture.deciding.entered(value, place, array)
        whole = self.capture.array_writes.entered(SymbolicArray(self.capture, value), place, array)
        variable = kind(self.capture, whole, real.requires_grad)
        variable.__dict__["source"] = source
        return variable

    def array(self, real: np.ndarray, source: Source, length: Optional[Source] = None) -> SymbolicArray:
        """The symbolic form of an array of the user's.  length: the path of how many there are in the list that it is made of."""
        device = self._device(real)
        is_fixed = self.capture.deciding.is_fixed(source, real)
        free_sizes = self.capture.free_sizes
        shape = free_sizes.shape(source, real.shape, is_fixed) if length is None else (
            *free_sizes.shape(length, real.shape[:1], is_fixed), *real.shape[1:])
        self.capture.heap.guard(ArrayMatch(source, shape, real.dtype, device))
        array = SymbolicArray(self.capture, self._add(ArrayInput, Tensor(shape, real.dtype, device), source))
        if not is_gpu(device):                          # looking at contents would wait for the device
            self.capture.index_ranges.entered(array.now(), source, real)
            self.capture.deciding.entered(array.now(), source, real)
        return self.capture.array_writes.entered(array, source, real)

    def note_length(self, source: Source, length: int) -> None:
        """Note the length of a list of the user's that is read as it is.  source: of the length."""
        self.capture.free_sizes.note_length(source, length)

    def length(self, source: Source, length: int) -> Size:
        """The length of a list of the user's: a symbol where it differs from call to call.  source: of the length."""
        return self.capture.free_sizes.shape(source, (length,))[0]

    def size(self, source: Source, real: int, is_size: bool) -> Optional[Size]:
        """A number of the user's that changes from call to call as a size; None where it is none.

        is_size: whether Python has needed the number itself, so that there would be a program for each.
        """
        if not is_size or not 2 <= real <= MOST_ELEMENTS:
            return None
        source = self.capture.heap.source(ArrayOfSize, source)
        shape = self.capture.free_sizes.shape(source, (real,))
        if type(shape[0]) is int:
            return None
        made = array_of_size(real)
        self.capture.heap.guard(ArrayMatch(source, shape, made.dtype))
        self._add(ArrayInput, Tensor(shape, made.dtype), source)
        return sizes(self.capture, shape)[0]

    def list_of_elements(self, source: Source, array: SymbolicArray, arrays: Callable[[Optional[str]], Any], kind: type,
                         more: Sequence[Any]) -> StagedList:
        """The items of a list of the user's, which are of one type, and more, as a new list of the graph.

        array: that NumPy makes of the list; arrays: gives it with another dtype.
        """
        elem = python_scalar(KINDS[kind]) if kind in KINDS else Tensor(array.shape[1:], array.dtype) if kind is np.ndarray else \
            Scalar("numpy", array.dtype)
        made = StagedList(self.capture, [made_of(self.capture, arrays, elem)])
        for item in more:
            made.append(item)
        return made

    def list_of_numbers(self, source: Source, more: Sequence[Any]) -> StagedList:
        """The items of a list of floats of the user's, of which there are some, and more, as a new list of the graph."""
        if source not in self._lists:
            self._lists[source] = self._add(ListInput, List(python_scalar("py_float")), source)
        made = StagedList(self.capture, [Items(self.capture, self._lists[source], "py_float").counted(Length(), 1)])
        for item in more:
            made.append(item)
        return made

    def object(self, real: Any, source: Source) -> SymbolicObject:
        """The symbolic form of an object that only the host can use."""
        return SymbolicObject(self.capture, self.object_value(source), real)

    def unknown(self, source: Source) -> SymbolicObject:
        """What is at the end of a path, of which nothing is known, nor relied on."""
        return SymbolicObject(self.capture, self.object_value(source))

    def object_value(self, source: Source) -> Value:
        """The object at the end of a path as a value of the graph, for host calls."""
        if source not in self._objects:
            self._objects[source] = self._add(ObjectInput, Dynamic(), source)
        return self._objects[source]

    def source_of(self, value: Value) -> Source:
        """The path that leads to an object."""
        return next(source for source, known in self._objects.items() if known is value)

    def number(self, source: Source, real: Any, kind: str) -> SymbolicScalar:
        """The symbolic form of a number that changes from call to call."""
        text = f"n{source.number}"
        self.named.append((text, source))
        return SymbolicScalar(self.capture, kind, text, real)

    def truth(self, source: Source, real: bool) -> SymbolicScalar:
        """The symbolic form of a bool that changes from call to call: a value of the graph, which no guard tells of."""
        return SymbolicScalar(self.capture, "py_bool", value=self._value_of_number(source, real))

    def numpy_number(self, source: Source, real: np.generic) -> SymbolicArray:
        """The symbolic form of a number of NumPy's that changes from call to call."""
        value = self._value_of_number(source, real)
        self._of_numpy[value] = f"n{source.number}", real
        return SymbolicArray(self.capture, value)

    def float_of(self, number: SymbolicArray) -> SymbolicScalar:
        """A number of NumPy's, or an array of one, as a float: an expression, of which guards can tell, where it is the user's."""
        if number.now() not in self._of_numpy:
            return self.capture.numpy.call(float, (number,), {})
        text, real = self._of_numpy[number.now()]
        return self.capture.expressions.function_of_numbers(float, (SymbolicScalar(self.capture, "py_float", text, real),))

    def _value_of_number(self, source: Source, real: Any) -> Value:
        text = f"n{source.number}"
        if text not in self._numbers:
            self.named.append((text, source))
            self._numbers[text] = self.capture.root.input(type_of(real), "number")
            self.all.append(NumberInput(self._numbers[text], text))
        return self._numbers[text]

    def number_value(self, text: str, kind: str, hint: Any) -> Value:
        """An expression over numbers as a value of the graph.  hint: what it is in this call."""
        if text not in self._numbers:
            value = self.capture.root.input(python_scalar(kind), "number")
            self._numbers[text] = value
            self.capture.number_checks.texts[value] = text, hint
            self.all.append(NumberInput(value, text))
        return self._numbers[text]

    def bind(self, value: Any, hint: str) -> str:
        """A name for an object in the generated code."""
        name = f"{hint}_of{len(self.bound)}"            # no path ends like this
        self.bound.append((name, value))
        return name

    def _add(self, kind: Any, type_: Any, source: Source, requires_grad: bool = False) -> Value:
        value = self.capture.root.input(type_, readable(source))
        self.all.append(kind(value, source, requires_grad))
        return value

    def _device(self, array: Any) -> str:
        """The device of an array of the user's, as the graph says it.  Stops the capture for arrays that are not compiled."""
        device = device_of(array)
        if type(array) is not np.ndarray and kind_of(device) not in COMPILED:
            self.capture.abort(f"an array of type {type(array).__module__}.{type(array).__name__}", hint=LAYOUTS)
        if array.dtype.kind not in "fiub" or not array.dtype.isnative:
            self.capture.abort(f"an array of dtype {array.dtype}")
        return self.capture.placement.entered(device)

    def text(self, source: Source, real: Union[str, bytes]) -> SymbolicText:
        """The symbolic form of a text that changes from call to call."""
        text = f"n{source.number}"
        self.named.append((text, source))
        return SymbolicText(self.capture, text, real)

    def text_value(self, text: str) -> Value:
        """An expression that gives a text as a value of the graph."""
        if text not in self._numbers:
            value = self._numbers[text] = self.capture.root.input(Dynamic(), "text")
            self.all.append(NumberInput(value, text))
        return self._numbers[text]
