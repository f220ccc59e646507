"""What Variables keep in ``grad_var`` while a capture runs, and what becomes of it at the end."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Sequence, Tuple, Type

import numpy as np

from ..ir.graph import Value
from ..lowering import host
from ..record.guards import IdentityMatch
from ..record.paths import Attribute, InstanceDict, Source
from ..record.writes import SetItem, StoreGradient, Write
from ..runtime.host_calls import Call, Hole, StateCall, as_it_is, nothing
from ..runtime.stores import array_of, write_array
from ..symbolic.kept_gradients import BEFORE, LOST, KeptGradient
from ..symbolic.memories import Memory
from ..symbolic.values import SymbolicArray, SymbolicParameter, SymbolicVariable

if TYPE_CHECKING:
    from .protocols import Capture


class _Stored:
    """The memory of a gradient that was stored, the Variable in the graph, and what that holds."""

    def __init__(self, memory: Memory, variable: Value, contents: SymbolicArray):
        self.memory, self.variable, self.contents = memory, variable, contents


class KeptGradients:
    """The gradients that the Variables of one capture keep."""

    def __init__(self, capture: Capture):
        self.capture = capture
        self._kept: Dict[int, KeptGradient] = {}
        self._stored: Dict[int, _Stored] = {}

    def real(self, variable: SymbolicVariable) -> Any:
        """The Variable of the user's that a symbolic one stands for."""
        return self.capture.heap.real_of(variable)

    def get(self, variable: SymbolicVariable) -> Optional[SymbolicVariable]:
        """``variable.grad_var``."""
        kept = self._of(variable)
        if kept.gradient is LOST:
            self.capture.abort("the gradient of a Variable depends on a decision on array values", because=variable)
        return kept.gradient

    def array(self, variable: SymbolicVariable) -> Optional[SymbolicArray]:
        """``variable.grad``."""
        kept, source = self._of(variable), variable.__dict__.get("source")
        if source is not None and not kept.was_cleared:
            if not self.real(variable)._grad_valid:
                self.capture.abort("the gradient of a Parameter is read before it is cleared or computed")
            heap = self.capture.heap
            heap.guard(IdentityMatch(heap.source(Attribute, source, "_grad_valid"), True))
        gradient = self.get(variable)
        return None if gradient is None else gradient._data[0]

    def assign(self, variable: SymbolicVariable, name: str, item: Any) -> None:
        """``variable.grad = item`` or ``variable.grad_var = item``."""
        if item is not None:
            is_right = isinstance(item, SymbolicVariable) if name == "grad_var" else type(item) is SymbolicArray
            if not is_right or (item if name == "grad" else item._data[0]).type != variable._data[0].type:
                self.capture.abort(f"`.{name}` of a Variable is assigned inside the compiled function")
            if name == "grad" and self._is_kept_anyway(variable, item):
                return
            if name == "grad":
                item = SymbolicVariable(self.capture, self.capture.chainer.leaf(item, True), True)
        self.set(variable, item, cleared=name == "grad")

    def _is_kept_anyway(self, variable: SymbolicVariable, array: SymbolicArray) -> bool:
        """Whether ``variable.grad = array``, under a decision, makes a Variable that nothing can tell from the one before.

        So it is for ``variable.grad *= scale``, unless something has the old Variable, or it can be differentiated.
        """
        kept = self._kept.get(id(variable))
        gradient = kept.gradient if kept is not None and self.capture.staging.depth else None
        if gradient is None or gradient is LOST or kept.is_shown:
            return False
        is_leaf = not gradient.connected and gradient.requires_grad and "source" not in gradient.__dict__
        return is_leaf and gradient._data[0] is array

    def shown(self, variable: SymbolicVariable) -> Optional[SymbolicVariable]:
        """``variable.grad_var`` as the user reads it, who may keep it."""
        gradient = self.get(variable)
        self._kept[id(variable)].is_shown = True
        return gradient

    def zero(self, variable: SymbolicVariable) -> None:
        """``variable.zerograd()``: the array that it has is filled, in place."""
        self.capture.callee(warnings.warn)("Variable.zerograd is deprecated. Use Variable.cleargrad instead.", DeprecationWarning)
        gradient = self.get(variable)
        if gradient is None:
            self.assign(variable, "grad", self.capture.callee(np.zeros_like)(variable.array))
        else:
            gradient.unchain()
            gradient.array.fill(0)
            self.set(variable, gradient, cleared=True)

    def loss_scale(self, variable: SymbolicVariable) -> Any:
        """The loss scale that `backward` left at a Variable."""
        kept, source = self._of(variable), variable.__dict__.get("source")
        if kept.loss_scale is not BEFORE:
            return kept.loss_scale
        heap = self.capture.heap
        return None if source is None else heap.shadow(self.real(variable)._loss_scale,
                                                       heap.source(Attribute, source, "_loss_scale"))

    def set_loss_scale(self, variable: SymbolicVariable, scale: Any) -> None:
        """Let a Variable, whose gradient has just been set, keep the scale of the loss."""
        kept = self._kept[id(variable)]
        is_same = kept.loss_scale is scale or type(scale) is float and kept.loss_scale == scale
        if "source" in variable.__dict__ and self.capture.staging.depth and not is_same:
            self.capture.abort("the scale of a loss changes in a loop on array values")
        kept.loss_scale = scale

    def set(self, variable: SymbolicVariable, gradient: Optional[SymbolicVariable], cleared: bool = False) -> None:
        """Let a Variable keep this gradient."""
        own, capture = variable.__dict__, self.capture
        if "made" in own:
            own["made"].clear(gradient is None and cleared)
        depth = 0 if "source" in own else own["depth"]
        is_outer = depth < capture.staging.depth
        kept = self._of(variable) if is_outer and "source" in own else self._kept.get(id(variable))
        if kept is None:
            # what it had before need not be known, nor is it read
            kept = self._kept[id(variable)] = KeptGradient(variable, None)
            kept.before = LOST if "source" in own else None
        if gradient is None and kept.gradient is None and "source" not in own:
            return
        if "origins" in own or "choice" in own:
            capture.abort("the gradient of a Variable is set that depends on a decision on array values", because=variable)
        if depth != capture.staging.depth and ("source" not in own or not capture.staging.in_loop):
            capture.abort("a gradient is written to a Variable under a decision on array values")
        if is_outer and cleared and not kept.was_cleared:
            capture.abort("a gradient is cleared in a loop on array values, and was not before it")
        kept.gradient = gradient
        kept.cleared |= cleared
        kept.was_cleared |= cleared

    @property
    def places(self) -> Iterable[KeptGradient]:
        """The gradients of the user's Variables."""
        return [kept for kept in self._kept.values() if "source" in kept.variable.__dict__]

    @property
    def is_ahead(self) -> bool:
        """Whether the user's Variables do not have all of these gradients yet."""
        return any(kept.gradient is not kept.before or kept.cleared for kept in self.places)

    def keeps(self, variable: SymbolicVariable) -> bool:
        """Whether a Variable made here has, or may have, a gradient."""
        kept = self._kept.get(id(variable))
        return kept is not None and kept.gradient is not None and kept.gradient is not LOST

    def join(self, made: SymbolicVariable, sides: Sequence[SymbolicVariable], known: bool = True) -> None:
        """Note that a Variable is one of several, by a decision; not ``known``: or of others."""
        if not known or any("source" in v.__dict__ or self._lost(v) or self.keeps(v) for v in sides):
            self._kept[id(made)] = KeptGradient(made, LOST)

    def changes(self) -> List[Tuple[Source, Type[Write], Any, Any]]:
        """The gradients and loss scales of the user's Variables that are new since the last call."""
        found: List[Tuple[Source, Type[Write], Any, Any]] = []
        for kept in self._kept.values():
            source = kept.variable.__dict__.get("source")
            if source is None:
                continue
            is_new = kept.loss_scale is not kept.stored_scale
            if kept.gradient is not kept.before or kept.cleared or is_new:
                unscaled = is_new and kept.loss_scale is None
                found.append((source, StoreGradient, (kept.cleared, unscaled), kept.gradient))
                if is_new and not unscaled:
                    attributes = self.capture.heap.source(InstanceDict, source)
                    found.append((attributes, SetItem, "_loss_scale", kept.loss_scale))
                kept.before, kept.cleared, kept.stored_scale = kept.gradient, False, kept.loss_scale
        return found

    def drop(self) -> None:
        """Clear the gradients of the Parameters whose arrays the call has written."""
        for kept in self._kept.values():
            variable = kept.variable
            if isinstance(variable, SymbolicParameter) and "source" in variable.__dict__ and kept.gradient is not LOST and \
                    self.capture.array_writes.is_written(variable._data[0]):
                kept.gradient, kept.cleared = None, True

    # --- what has been stored in the middle of the graph ----------------------------------------------------------------

    def stored(self) -> None:
        """The gradients are stored now: from here on their arrays belong to Variables that the user can look at."""
        for kept in self._kept.values():
            gradient = kept.gradient
            if "source" not in kept.variable.__dict__ or gradient is None or gradient is LOST or "source" in gradient.__dict__:
                continue
            memory = self.capture.array_writes.memory_of(gradient._data[0])
            if memory.source is None and id(memory) not in self._stored:
                self._stored[id(memory)] = _Stored(memory, self.capture.escaping.early(gradient), memory.contents)

    def stored_count(self) -> int:
        """How many gradients are stored in the middle of the graph."""
        return len(self._stored)

    def forget_stored(self, count: int) -> None:
        """Forget all but the first ones."""
        self._stored = dict(list(self._stored.items())[:count])

    def write_again(self) -> None:
        """Write into the arrays of stored gradients what was written since, and let the graph hold these arrays themselves."""
        for stored in self._stored.values():
            if stored.memory.contents is stored.contents:
                continue
            contents, builder = stored.memory.contents, self.capture.builder
            call = Call(array_of, (Hole(0),), {}, as_it_is, "array")
            array, = builder.add(host.host_call, (stored.variable,), {"call": call, "types": (contents.type,)}, name="gradient")
            write = StateCall(write_array, (Hole(0), None, Hole(1)), {}, nothing, "array")
            builder.add(host.host_call, (array, contents.now()), {"call": write, "types": ()}, name="write")
            stored.contents = stored.memory.contents = SymbolicArray(self.capture, array)

    def _lost(self, variable: SymbolicVariable) -> bool:
        kept = self._kept.get(id(variable))
        return kept is not None and kept.gradient is LOST

    def _of(self, variable: SymbolicVariable) -> KeptGradient:
        own, heap = variable.__dict__, self.capture.heap
        if "made" in own and own["made"].has_gradient:
            self.capture.abort("the gradient of a Parameter is read before it is cleared or computed")
        if "source" in own:
            heap.check_fresh()
        if "exposed" in own:
            self.capture.abort(f"a Variable is used after {own['exposed']}, which may have changed it", of_host=True, whole=True)
        kept = self._kept.get(id(variable))
        if kept is None:
            gradient = None
            if "source" in own:
                gradient = heap.shadow(self.real(variable).grad_var, heap.source(Attribute, own["source"], "grad_var"))
            kept = self._kept[id(variable)] = KeptGradient(variable, gradient)
        return kept
