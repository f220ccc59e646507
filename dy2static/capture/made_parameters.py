"""Parameters that are made inside: each run makes them, by calls of Chainer's, and the graph has their arrays."""
from __future__ import annotations

import operator
import types
from typing import TYPE_CHECKING, Any, Callable, List, Sequence, Tuple

import chainer
import numpy as np
from chainer.initializers import Constant

from ..heap.dict_shadows import as_key
from ..heap.ownership import is_library, is_library_class
from ..ir.graph import Value
from ..ir.types import Dynamic, Tensor, type_of
from ..lowering import host
from ..runtime.host_calls import Call, Hole, fill
from ..runtime.made_parameters import cleargrad, copy_parameter, initialize, make_array, make_parameter, rename
from ..symbolic import abstract_eval
from ..symbolic.size_trials import holds_sizes
from ..symbolic.sizes import Size
from ..symbolic.values import SymbolicArray, SymbolicParameter, SymbolicScalar, is_symbolic
from .opaque_functions import trial_run

if TYPE_CHECKING:
    from .protocols import Capture

_PLAIN = (type(None), bool, int, float, str, type, np.generic, np.dtype)


class MadeParameters:
    """The Parameters that one capture makes."""

    def __init__(self, capture: Capture):
        self.capture = capture

    def make(self, *args: Any, **kwargs: Any) -> SymbolicParameter:
        """``chainer.Parameter(*args, **kwargs)``."""
        return self._made(make_parameter, (_fixed(args), _fixed(kwargs)))

    def copied(self, variable: SymbolicParameter, deep: bool) -> SymbolicParameter:
        """``copy.deepcopy(parameter)``, or ``copy.copy(parameter)``."""
        capture, made = self.capture, variable.__dict__.get("made")
        if made is None and "source" not in variable.__dict__:
            self.refuse("is copied that depends on a decision")
        capture.effects.store_writes()
        value = capture.inputs.object_value(variable.__dict__["source"]) if made is None else made.value
        model = capture.heap.real_of(variable) if made is None else made.model
        with trial_run():
            copied = copy_parameter(model, deep)
        return self._added(copy_parameter, (Hole(0), deep), [value], copied)

    def array(self, initializer: Any, shape: Any, xp: Any, dtype: Any = None, device: Any = None) -> SymbolicArray:
        """``chainer.initializers.generate_array(...)`` of an array of NumPy's."""
        if xp is not np:
            self.refuse("is made on another device")
        template, operands, made = self._tried(make_array, (_fixed(initializer), _fixed(shape), dtype))
        value, = self.add(make_array, template, operands, (type_of(made[0]),))
        array = SymbolicArray(self.capture, value)
        self.capture.array_writes.filled(array)
        return array

    def _made(self, function: Callable, given: Tuple) -> SymbolicParameter:
        template, operands, made = self._tried(function, given)
        return self._added(function, template, operands, made)

    def _tried(self, function: Callable, given: Tuple) -> Tuple[List[Any], List[Value], List[Any]]:
        """The arguments with holes, the operands, and what the function gives for made-up ones."""
        if not _is_plain(given):
            self.refuse("is made of objects of the user's")
        operands: List[Value] = []
        template = [self.capture.operands.hand_over(part, operands) for part in given]
        if holds_sizes([v.type for v in operands]):
            self.refuse("is made of an array of a size that only the run knows")
        copied = {self.capture.operands.copy_of(item): item for item in _initializers(given)}
        example = [copied.get(v) or abstract_eval.stand_in(v.type, 0) for v in operands]
        with trial_run():
            return template, operands, function(*fill(template, example))

    def _added(self, function: Callable, template: Sequence[Any], operands: Sequence[Value], made: List[Any]) -> SymbolicParameter:
        """The Parameter that a node gives, as it gave ``made`` in a trial."""
        self.capture.event("host", "Parameter", "a Parameter is made")
        value, *arrays = self.add(function, template, operands, (Dynamic(), *map(type_of, made[1:])))
        parameter = Made(self, made[0], value)
        if arrays:
            parameter.has(arrays[0])
        return parameter.variable

    def add(self, function: Callable, args: Sequence[Any], operands: Sequence[Value], kinds: Tuple) -> Tuple[Value, ...]:
        """Add a node that calls a function of `runtime/made_parameters.py`."""
        if self.capture.staging.depth:
            in_loop = self.capture.staging.in_loop      # otherwise, the decision can be settled
            self.refuse("is made, initialized or changed under a decision on array values", again=in_loop)
        within = self.capture.host.under_config(None)
        call = Call(function, tuple(args), {}, list, function.__name__, within=within, looks=False, keeps=False)
        return self.capture.builder.add(host.host_call, tuple(operands), {"call": call, "types": kinds}, name="parameter")

    def refuse(self, what: str, again: bool = True) -> None:
        """Stop the capture.  A Parameter that this call makes and keeps is there in the next."""
        self.capture.abort(f"a Parameter {what} inside the compiled function", again=again,
                           hint="make it before the call, or keep it where the next call finds it")


class Made:
    """A Parameter that the compiled function creates.

    variable: what user code gets.  value: the object, in the graph.  name: its name.  has_gradient: whether it still has the
    gradient that it was made with.
    """

    def __init__(self, parameters: MadeParameters, model: chainer.Parameter, value: Value):
        self.parameters, self.model, self.value = parameters, model, value
        self.name, self.has_gradient = model.name, True
        self.variable = SymbolicParameter.__new__(SymbolicParameter)
        self.variable.__dict__.update(
            made=self, capture=parameters.capture, _data=[None], _requires_grad=True, _layout=None, _has_chainerx_array=False,
            _device=None, connected=False, depth=0)

    def has(self, array: Value) -> None:
        """It is initialized: this is its array."""
        capture = self.parameters.capture
        whole = SymbolicArray(capture, array)
        capture.array_writes.filled(whole)
        whole.shared = "kept"                           # the Parameter has it, too
        self.variable.__dict__["_data"] = [whole]
        capture.gradients.note(self.variable)
        capture.escaping.adopt(self.variable, self.value)

    def initialize(self, shape: Any) -> None:
        """``parameter.initialize(shape)``."""
        shape = _fixed(shape)
        if self.variable._data[0] is not None:
            self.parameters.refuse("is initialized twice")
        with trial_run():
            self.model.initialize(shape)
        array = self.model.array
        self.has(*self.parameters.add(initialize, (Hole(0), shape), (self.value,), (Tensor(array.shape, array.dtype),)))

    def rename(self, name: Any) -> None:
        """``parameter.name = name``."""
        self.name = as_key(name)
        self.parameters.add(rename, (Hole(0), self.name), (self.value,), ())

    def clear(self, cleared: bool) -> None:
        """``parameter.cleargrad()``; other gradients cannot be given to it."""
        if not cleared:
            self.parameters.refuse("that is made here gets a gradient")
        self.has_gradient = False
        self.parameters.add(cleargrad, (Hole(0),), (self.value,), ())


def _fixed(item: Any) -> Any:
    """The item with numbers themselves in place of expressions."""
    if type(item) in (tuple, list):
        return type(item)(map(_fixed, item))
    if type(item) is dict:
        return {key: _fixed(part) for key, part in item.items()}
    if type(item) is Size:
        return operator.index(item)
    if type(item) is Constant and is_symbolic(item.fill_value):
        return (Constant, _fixed(item.fill_value), item.dtype)
    return item.fix() if type(item) is SymbolicScalar else item


def _initializers(item: Any) -> List[chainer.Initializer]:
    """The initializers among arguments."""
    if isinstance(item, (tuple, list, dict)):
        return [found for part in (item.values() if isinstance(item, dict) else item) for found in _initializers(part)]
    return [item] if isinstance(item, chainer.Initializer) else []


def _is_plain(item: Any) -> bool:
    """Whether a Parameter can be made of this at capture and in every run alike."""
    if isinstance(item, (tuple, list)):
        return all(map(_is_plain, item))
    if isinstance(item, dict):
        return all(map(_is_plain, item.values()))
    if type(item) is SymbolicArray:
        return not item.is_scalar
    if isinstance(item, chainer.Initializer):
        return is_library_class(type(item)) and all(map(_is_setting, vars(item).values()))
    return _is_setting(item) or isinstance(item, types.FunctionType) and is_library(item.__module__ or "")


def _is_setting(item: Any) -> bool:
    return all(map(_is_setting, item)) if type(item) is tuple else not is_symbolic(item) and isinstance(item, _PLAIN)

