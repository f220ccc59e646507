"""Functions of Chainer that stay whole: each is one opaque node, whose types trial runs or an eager call tell."""
from __future__ import annotations

import contextlib
import types
from typing import TYPE_CHECKING, Any, Iterator, List, Mapping, Optional, Tuple

import chainer
import numpy as np

from ..heap.global_state_guard import undrawn
from ..heap.naming import identifier
from ..heap.ownership import is_library
from ..ir.dims import as_multiple
from ..ir.graph import Value
from ..ir.types import Scalar, Tensor, placed
from ..lowering import opaque
from ..runtime.opaque import UNFOLLOWED, VARYING, OpaqueCall, copy_node
from ..symbolic import abstract_eval, patches
from ..symbolic.number_ranges import kind_of
from ..symbolic.size_trials import bound, few_trials, fitted_types, holds_sizes, tried_with
from ..symbolic.values import SymbolicScalar
from ..symbolic.views import arrays_in
from ..threads.quiet import quiet
from .function_nodes import implementation_of, name_of, trap_attributes
from .self_contained import apart, is_self_contained
from .sizes_learned import SizesLearned

if TYPE_CHECKING:
    from .protocols import Capture

_LEARNED = "the types of the results of {} are learned from this call"


class OpaqueFunctions:
    """The functions of Chainer that stay whole in one capture."""

    def __init__(self, capture: Capture):
        self.capture = capture
        self._trial: Mapping[str, int] = {}             # numbers for the free sizes, while a function is tried

    def add(self, node: chainer.FunctionNode, values: List[Value], requires: List[bool], position: int,
            device: str) -> Tuple[Value, ...]:
        """The results of a function, as those of one node; stops the capture if their types are not known.

        requires: of each of ``values``, whether it requires a gradient.  position: how many functions came before.
        """
        is_known = is_library(implementation_of(node).__module__)
        if holds_sizes([*node.__dict__.values()]) or is_known and few_trials((), [v.type for v in values]) is None:
            self.capture.abort(f"{name_of(node)} of an array of unknown size")
        self.capture.effects.store_writes()
        self.capture.event("opaque", name_of(node), "debug mode" if chainer.is_debug() else "it has no lowering")
        operands = list(values)
        pristine = copy_node(node)
        holder = pristine.function if isinstance(pristine, chainer.function.FunctionAdapter) else pristine
        for array in arrays_in(list(holder.__dict__.values())):
            self.capture.array_writes.by_reference(array)       # forward may change it in place
        for name, value in list(holder.__dict__.items()):
            if isinstance(value, (types.FunctionType, types.MethodType)) and not is_library(value.__module__ or ""):
                if not is_self_contained(value):
                    self.capture.abort(f"{name_of(node)} holds a function that reads or changes more than its arguments")
                holder.__dict__[name] = apart(value)
        if not is_library(type(holder).__module__):
            self.capture.entered_reporters.check_host(name_of(node))
            self.capture.heap.objects.open_classes.stays_whole(type(holder))
        else:
            holder.__dict__.update({name: _with_whole(value) for name, value in holder.__dict__.items()})
        hidden = {name: self.capture.operands.template(value, operands) for name, value in holder.__dict__.items()
                  if self.capture.operands.holds_symbolic(value)}
        self.capture.number_checks.hold_all(operands[len(values):])
        # The copy must not hold anything symbolic: the program outlives the capture.
        for name in hidden:
            holder.__dict__[name] = None
        callers = [any(v is given for given in self.capture.root.inputs) for v in values]
        call = OpaqueCall(pristine, hidden, requires, callers, self.capture.chainer.changed_config())
        found = self._types(node, call, operands, position)
        if device and call.observed is not None:        # learned on the host
            call.observed = tuple([placed(t, device) for t in call.observed])
        trap_attributes(node, call.written, self.capture)
        outputs = self.capture.builder.add(opaque.opaque, tuple(operands), {"call": call, "types": found},
                                   name=identifier(name_of(node)))
        return outputs[:-1]

    def _types(self, node: chainer.FunctionNode, call: OpaqueCall, operands: List[Value], position: int) -> Tuple:
        implementation = node.function if isinstance(node, chainer.function.FunctionAdapter) else node
        types_ = tuple(v.type for v in operands)
        if type(implementation) in VARYING:
            self.capture.abort(f"the shapes or dtypes of what {name_of(node)} gives depend on the contents of arrays")
        if holds_sizes(types_):
            return self._sized_types(node, call, operands, position)
        known = is_library(type(implementation).__module__) and not self.capture.chainer.is_altered(type(implementation))
        if known and all(isinstance(t, (Tensor, Scalar)) for t in types_):
            with trial_run():
                try:
                    found = self._probe(call, operands)
                    varies = len(operands) > len(call.requires) or any(np.dtype(t.dtype).kind in "iub" for t in types_)
                    fillings = abstract_eval.FILLINGS[1:] if varies else ()
                    others = {self._types_with(call, operands, filling) for filling in fillings}
                    if others <= {found, None}:
                        by_number = any(kind_of(t) for t in types_[len(call.requires):])
                        call.observed = found if None in others or by_number else None      # the run will tell
                        return found
                    reason = f"the shape of the result of {name_of(node)} depends on the contents of an array"
                except Exception as error:      # whatever a function raises on contents that are none of its own
                    reason = f"{name_of(node)} fails on the placeholder arrays of the capture: {error}"
            self.capture.abort(reason)
        call.observed = self._observed_types(type(implementation), position, types_[:len(call.requires)])
        if call.observed is None:
            self.capture.abort(_LEARNED.format(name_of(node)), again=True, observe=())
        return call.observed

    def _sized_types(self, node: chainer.FunctionNode, call: OpaqueCall, operands: List[Value], position: int) -> Tuple:
        """The types of the results where sizes of operands are free: as they follow these in several trials.  Runs check it."""
        if not is_library(implementation_of(node).__module__):
            return self._followed(node, call, operands, position)
        found, learned = [], set()
        multiples = {(i, axis): as_multiple(n) for i, v in enumerate(operands) if isinstance(v.type, Tensor)
                     for axis, n in enumerate(v.shape)}
        call.sizes = {multiple[0]: (*place, multiple[1]) for place, multiple in multiples.items() if multiple is not None}
        with trial_run():
            try:
                for numbers, _ in tried_with([v.type for v in operands]):
                    self._trial = numbers
                    found.append((numbers, self._probe(call, operands)))
                    learned.add((call.connected, call.reads, call.written))
            except Exception as error:          # whatever a function raises on contents that are none of its own
                self.capture.abort(f"{name_of(node)} fails on the placeholder arrays of the capture: {error}")
            finally:
                self._trial = {}
        call.observed = fitted_types(found)
        if call.observed is None or len(learned) > 1 or set(found[0][0]) != set(call.sizes):
            self.capture.abort(f"{name_of(node)} of an array of unknown size")
        return call.observed

    def _followed(self, node: chainer.FunctionNode, call: OpaqueCall, operands: List[Value], position: int) -> Tuple:
        """The types of the results as they followed the sizes of operands in eager calls.  Runs check it."""
        cls, count, types_ = implementation_of(node), len(call.requires), [v.type for v in operands]
        if cls not in UNFOLLOWED and not holds_sizes(types_[count:]):
            learned = SizesLearned(self.capture.observed.copy(), cls, position, types_[:count])
            found = learned.types()
            if found is not None:
                types_found, call.observed, call.sizes = found
                return types_found
            if learned.lacks(self.capture.free_sizes.numbers):
                self.capture.abort(_LEARNED.format(name_of(node)), again=True, observe=(), at_once=True)
        return self.capture.abort(f"{name_of(node)} of an array of unknown size")

    def _observed_types(self, cls: type, position: int, inputs: Tuple) -> Optional[Tuple]:
        """What an eager call gave at this place, or else at all others."""
        found = self.capture.observed.get((cls, position, inputs))
        if found is None:
            others = {types for key, types in self.capture.observed.copy().items() if (key[0], key[2]) == (cls, inputs)}
            found = others.pop() if len(others) == 1 else None
        return found

    def _probe(self, call: OpaqueCall, operands: List[Value]) -> Tuple:
        """The types of the results; where floats of any size do not do, floats between 0 and 1 may."""
        try:
            return call.probe([self.made_up(v) for v in operands])
        except Exception:               # any: made-up contents may be wrong in any way; where these are, too, the capture ends
            return call.probe([_halved(self.made_up(v)) for v in operands])

    def _types_with(self, call: OpaqueCall, operands: List[Value], filling: int) -> Optional[Tuple]:
        """The types of the results if integers, and what is hidden in attributes, have other contents; None if these fail."""
        count = len(call.requires)
        arrays = [self.made_up(v, filling if i >= count or np.dtype(v.type.dtype).kind in "iub" else 0)
                  for i, v in enumerate(operands)]
        try:
            return call.types(arrays)
        except Exception:               # any: labels that are none; what other labels would give is not known, then
            return None

    def made_up(self, value: Value, filling: int = 0) -> Any:
        """Contents for a trial run: what the value holds, where that is static."""
        known = self.capture.known.get(value)
        if self._trial and value in self.capture.dimensions:
            return bound(self.capture.dimensions[value], self._trial)
        if known is not None:
            return np.array(known)
        return abstract_eval.stand_in(bound(self.capture.number_checks.like(value), self._trial), filling)


@contextlib.contextmanager
def trial_run() -> Iterator[None]:
    """Code runs inside on made-up arrays, and leaves nothing behind; the run of the program will warn."""
    with undrawn(), patches.suspended(), np.errstate(all="ignore"), quiet():
        yield


def _with_whole(attribute: Any) -> Any:
    """An attribute of a function with the whole numbers of this call, on which shapes depend, for those that differ in others."""
    if type(attribute) is SymbolicScalar and attribute.text is not None and attribute.kind in ("py_int", "py_bool"):
        return attribute.fix()
    return type(attribute)(map(_with_whole, attribute)) if type(attribute) in (tuple, list) else attribute


def _halved(array: Any) -> Any:
    return array * array.dtype.type(0.5) if isinstance(array, np.ndarray) and array.dtype.kind == "f" else array
