"""Variables and Parameters of a graph: what user code meets instead of Chainer's while a capture runs."""
from __future__ import annotations

from typing import Any, Callable

import chainer
import chainer.functions as F
import numpy as np
from chainer._backend import Device
from chainer.backends import cuda
from chainer.backends._cpu import CpuDevice

from ..capture_context import CaptureContext
from ..heap.stand_ins import stands_for
from ..ir.devices import is_gpu
from ..ir.graph import Value
from ..record.paths import Attribute
from ..runtime.devices import array_module, chainer_device, current_device, device_named
from .arrays import SymbolicArray, as_index
from .own_attributes import assign_own, read_own


def _outside(what: str) -> Callable:
    """A method of Variables that is there outside of compiled functions only."""
    def use(self: "SymbolicVariable", *_: Any, **__: Any) -> Any:
        """Stop the capture."""
        shown = f"the {what}" if what in ("copy", "text") else f"`.{what}`"
        self.capture.abort(f"{shown} of a Variable is used inside the compiled function")
    return use


class SymbolicVariable(chainer.Variable):
    """A Variable of a graph.  ``_data[0]`` is its `SymbolicArray`, so shape, dtype and ``array`` work as they are."""

    __class__ = property(lambda self: chainer.Variable)             # type: ignore[assignment]

    def __init__(self, capture: CaptureContext, array: SymbolicArray, requires_grad: bool, connected: bool = False):
        # Variable.__init__ is not called: it would make a node and look at the contents.
        self.__dict__.update(capture=capture, _data=[array], _requires_grad=requires_grad, _layout=None,
                             _has_chainerx_array=False, _device=None, connected=connected,
                             depth=capture.staging.depth)
        capture.gradients.note(self)

    @property
    def value(self) -> Value:
        """The contents of its array now."""
        return self._data[0].now()

    def __getitem__(self, slices: Any) -> Any:
        return F.get_item(self, as_index(slices))       # Chainer looks at the items of a list

    def __getattr__(self, name: str) -> Any:
        return read_own(self, name)

    def __setattr__(self, name: str, item: Any) -> None:
        if name == "_device":
            self.__dict__[name] = item
        elif name == "name" and "made" in self.__dict__:
            self.__dict__["made"].rename(item)
        elif name in ("grad", "grad_var"):
            self.capture.grad_state.assign(self, name, item)
        elif name in ("array", "data"):
            if item is not self._data[0]:               # but for ``v.array += a``
                self.capture.rebound_arrays.assign(self, name, item)
        elif name == "volatile" and "source" not in self.__dict__ and self.capture.staging.depth == 0:
            self.__dict__[name] = item                  # of Chainer 1: `L.Parameter` sets it, Chainer does not read it
        elif not assign_own(self, name, item):
            # a backward that reads what a part gave would read what was before, but for names, rules and attributes of the user's
            whole = name not in ("name", "update_rule") and (name.startswith("_") or hasattr(type(self), name))
            self.capture.abort(f"`.{name}` of a Variable is assigned inside the compiled function", whole=whole)

    def backward(self, retain_grad: bool = False, enable_double_backprop: bool = False, loss_scale: Any = None) -> None:
        self.capture.gradients.backward(self, retain_grad, enable_double_backprop, loss_scale)

    def cleargrad(self) -> None:
        self.capture.grad_state.set(self, None, cleared=True)

    def zerograd(self) -> None:
        self.capture.grad_state.zero(self)

    def _set_grad(self, g: Any, *, layout_check: bool = True) -> None:
        self.capture.grad_state.assign(self, "grad", g)

    def copydata(self, var: chainer.Variable) -> None:
        if self.array is None or var.array is None:
            self.capture.abort("a Parameter that is not initialized is copied inside the compiled function")
        self.capture.callee(np.copyto)(self.array, var.array)

    def addgrad(self, var: chainer.Variable) -> None:
        if var.grad is not None:
            self.grad_var = var.grad_var if self.grad_var is None else var.grad_var + self.grad_var

    def unchain(self) -> None:
        self.capture.gradients.unchaining.unchain(self)

    def unchain_backward(self) -> None:
        self.capture.gradients.unchaining.unchain_backward(self)

    @property
    def device(self) -> Device:
        """The device that it is on, as an object of the user's or made here."""
        if self._device is None:
            heap, source, place = self.capture.heap, self.__dict__.get("source"), self._data[0].place
            self._device = chainer_device(place) if is_gpu(place) else \
                heap.objects.make_instance(CpuDevice, (), {}) if source is None else \
                heap.shadow(heap.real_of(self).device, heap.source(Attribute, source, "device"))
        return self._device

    def to_device(self, device: Any) -> None:
        device = self.capture.callee(chainer.get_device)(device)
        place = self._data[0].place
        if not (device_named(device) == place if is_gpu(place) else isinstance(device, CpuDevice)):
            self.capture.abort("a Variable is sent to another device inside the compiled function",
                               hint="`F.copy` gives another Variable, and has a gradient", whole=True)
        self._device = device

    def to_cpu(self) -> None:
        self.to_device("@numpy")

    def to_gpu(self, device: Any = None) -> None:
        self.to_device(cuda.GpuDevice.from_device_id(current_device() if device is None else int(device)))

    @property
    def name(self) -> Any:
        """That of the user's Variable, under a guard; what is made here has the one that it is made with, and does not leave."""
        own, heap = self.__dict__, self.capture.heap
        if "origins" in own or "choice" in own:
            return _outside("name")(self)
        if "source" not in own:
            return own.get("named", (None,))[0]
        heap.check_fresh()
        return heap.shadow(heap.real_of(self).name, heap.source(Attribute, own["source"], "name"))

    retain_data, set_creator, set_creator_node = map(_outside, ("retain_data()", "set_creator()", "set_creator_node()"))
    to_chx, from_chx, debug_print = map(_outside, ("to_chx()", "from_chx()", "debug_print()"))
    xp = property(lambda self: array_module(self._data[0].place) if is_gpu(self._data[0].place) else np)
    grad = property(lambda self: self.capture.grad_state.array(self))
    grad_var = property(lambda self: self.capture.grad_state.shown(self))
    node = _node = property(_outside("node"))
    creator = creator_node = property(lambda self: self.capture.gradients.creator(self))
    rank, label = map(property, map(_outside, ("rank", "label")))
    _loss_scale = property(lambda self: self.capture.grad_state.loss_scale(self))
    initializer, update_rule = [property(use, use) for use in map(_outside, ("initializer", "update_rule"))]
    __copy__ = __deepcopy__ = __reduce__ = _outside("copy")
    __str__ = __repr__ = __format__ = _outside("text")


class SymbolicParameter(SymbolicVariable, chainer.Parameter):
    """A Parameter of a graph.  For a Parameter made inside, ``made`` is the object as far as it exists."""

    __class__ = property(lambda self: chainer.Parameter)            # type: ignore[assignment]

    @property
    def name(self) -> Any:
        made = self.__dict__.get("made")
        return super().name if made is None else made.name

    @property
    def update_rule(self) -> Any:
        """The rule of a Parameter of the user's; those that are made inside have none."""
        heap, source = self.capture.heap, self.__dict__.get("source")
        if source is None:
            return _outside("update_rule")(self)
        heap.check_fresh()
        return heap.shadow(heap.real_of(self).update_rule, heap.source(Attribute, source, "update_rule"))

    def update(self) -> None:
        self.capture.functions.staged(chainer.Parameter.update)(self)

    def initialize(self, shape: Any) -> None:
        if "made" not in self.__dict__:
            self.capture.abort("a Parameter is initialized again inside the compiled function")
        self.__dict__["made"].initialize(shape)

    def __copy__(self) -> Any:
        return self.capture.made_parameters.copied(self, False)

    def __deepcopy__(self, memo: Any) -> Any:
        return self.capture.made_parameters.copied(self, True)


stands_for(SymbolicVariable, chainer.Variable)
stands_for(SymbolicParameter, chainer.Parameter)
