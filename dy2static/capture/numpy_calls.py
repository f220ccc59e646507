"""Calls of NumPy on symbolic arrays, outside of Chainer's graph."""
from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ..heap.naming import identifier
from ..heap.wording import in_users_words
from ..ir.devices import is_gpu
from ..ir.graph import Value
from ..ir.op import OPS
from ..ir.types import Dynamic, Scalar, Tensor
from ..library_facts import numpy as numpy_facts
from ..library_facts.table import named
from ..lowering import host
from ..lowering.indexing import Window
from ..lowering.numpy.table import fixed, lower_numpy
from ..runtime.array_parts import flat_item
from ..runtime.array_writes import write_at, write_at_checked
from ..runtime.functions import Attempt
from ..runtime.host_calls import LEAF, Attribute, Call, Method, fill, flat, form_of
from ..symbolic import abstract_eval
from ..symbolic.data_dependent_sizes import NewSizes, may_be_empty
from ..symbolic.layouts import Unordered
from ..symbolic.size_trials import infer_sized
from ..symbolic.values import SymbolicArray
from .learned_calls import Learned, kind_of, learn, learned
from .protected_calls import DECIDABLE, attempted, raise_first
from .purity import is_of_python
from .single_rows import with_numbers
from .windows import part_of, with_least, with_windows

if TYPE_CHECKING:
    from .protocols import Capture

#: Methods of arrays that give what only the host can use.
_OF_HOST = named("host", numpy_facts.METHODS)

#: Python's conversions, and the ops that they are.
_CONVERSIONS = {float: "py_float", bool: "py_bool", int: "py_int"}


class _Given(NamedTuple):
    """What a call gives: the function that computes it, the structure of the result, and the types of its leaves.

    extents: the sizes that only the run knows.  sizes: where these come from.  held: the operands, if all are known.  may_fail:
    whether the call may fail on what its operands hold.
    """

    function: Callable[..., Any]
    structure: Any
    types: Tuple[Any, ...]
    extents: Tuple[Any, ...]
    sizes: Optional[NewSizes]
    held: Optional[List[Any]]
    may_fail: bool


class NumPyCalls:
    """The calls of NumPy of one capture."""

    def __init__(self, capture: Capture):
        self.capture = capture
        self._unordered = Unordered(capture)

    def call(self, function: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """A call of NumPy on symbolic arrays; ``("method", name)`` and ``("attribute", name)`` are of the first operand."""
        self.capture.check()
        name = function[1] if type(function) is tuple else getattr(function, "__name__", "")
        args = self.capture.assumed_sizes.applied(name, args)
        if function is operator.getitem and type(args[0]) is SymbolicArray:
            rows = self.capture.index_ranges.rows_at(*args) if self.capture.staging.in_loop else NotImplemented
            if rows is not NotImplemented:
                return rows
            args = args[0], with_numbers(self.capture, with_windows(self.capture, args[1], args[0].shape), args[0].shape)
            if type(args[1]) is tuple and any(type(entry) is Window for entry in args[1]):
                return part_of(self.capture, *args)
        if name in Unordered.NAMES:
            args, kwargs = self._unordered.ordered(name, args, kwargs)
        done = self.capture.array_writes.intercept(function, args, kwargs)
        if done is NotImplemented:
            done = self._of_types(function, args, kwargs)
        if done is NotImplemented:
            done = self._converted(function, args, kwargs)
        return self._computed(function, args, kwargs) if done is NotImplemented else done

    def _of_types(self, function: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """What follows from the types of the arrays alone; NotImplemented for other functions."""
        name, called = _callable(function)
        if name == "get":
            return self.capture.placement.got(*args, **kwargs)
        if name in _OF_HOST and isinstance(function, tuple):
            return self.capture.host.call(called, args, kwargs, (Dynamic(),))
        if name == "isfortran" and args and type(args[0]) is SymbolicArray:
            return bool(self.capture.array_writes.layouts.example(args[0]).flags.fnc)
        if name in abstract_eval.REFUSED:
            self.capture.abort(f"{_shown(function, name)} is called on an array of the graph")
        if name in ("shape", "ndim", "size") and len(args) == 1 and not kwargs and type(args[0]) is SymbolicArray:
            return getattr(args[0], name)
        if name not in abstract_eval.OF_TYPES:
            return NotImplemented
        try:
            return abstract_eval.of_types(called, args, kwargs)
        except ValueError as error:
            return self._abort_typing(_shown(function, name), error)

    def _converted(self, function: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """A number of Python's made of an array; NotImplemented for other calls."""
        if isinstance(function, tuple) or function not in _CONVERSIONS or len(args) != 1 or kwargs or \
                not self._is_plain_number(args[0], function):
            return NotImplemented
        capture, name = self.capture, function.__name__
        key = function, capture.value_numbering.first(args[0].value)
        found = capture.value_numbering.number(key, capture.builder)
        if found is None:
            capture.event("staged", name)
            found, = capture.builder.add(OPS[_CONVERSIONS[function]], (args[0].value,), {}, name=name)
            capture.value_numbering.note(key, (found,), capture.builder)
        return capture.wrap(found)

    def _computed(self, asked: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """What a call gives that runs compute."""
        capture = self.capture
        operands: List[Value] = []
        name, function = _callable(asked)
        if is_of_python(function):
            capture.abort(f"`{name}` calls a function of Python's, of which `np.frompyfunc` has made it")
        template = tuple([capture.operands.template(part, operands) for part in (tuple(args), dict(kwargs))])
        device = capture.builder.device = capture.placement.of_call(operands)
        if is_gpu(device):
            capture.placement.called_on(device)
            capture.placement.dispatched(function, _shown(asked, name))
        form = form_of(template)
        key = capture.value_numbering.key((asked, device) if device else asked, form, operands)
        known = None if key is None else capture.value_numbering.number(key, capture.builder)
        if known is not None:
            return capture.wrap(known)
        kind = kind_of(capture, function, form, operands)
        like = learned(kind)
        if like is not None:
            given = _Given(function, like.structure, like.types, (), None, None, False)
        else:
            before = tuple(operands)
            given = self._tried(asked, name, function, template, operands, device)
            is_plain = given.function is function and before == tuple(operands) and not given.may_fail
            like = learn(kind, given.structure, given.types) if is_plain else None
        function, structure, found, extents, sizes, held, may_fail = given
        bounds = None if kwargs else capture.number_bounds.of_call(name, template[0], operands)
        may_fail = may_fail and bounds is None and not capture.index_ranges.is_inside(function, template[0], operands)
        if may_fail and capture.effects.is_protected():
            if function in DECIDABLE:
                raise_first(function, *args)
                may_fail = False
            elif (done := attempted(capture, function, args, kwargs)) is not NotImplemented:
                return done
        single = structure is LEAF
        shown = _shown(asked, name) if is_gpu(device) else ""
        arguments = capture.placement.written(function, template[0], shown, device)
        call = Call(capture.placement.function(function, shown, device), arguments, template[1], flat, name, single)
        outputs = self._add(asked, call, operands, {"types": found, **({"extents": extents} if extents else {})}, may_fail, like)
        capture.value_numbering.note(key, outputs, capture.builder)
        if sizes is not None:
            sizes.note(outputs)
            for size in sizes.fresh:
                capture.assumed_sizes.decided(name, size)
        if outputs:                                     # none where it gives an empty list
            capture.number_bounds.note(outputs[0], bounds)
        if held is not None:                            # made of nothing but what is static: Python may decide on it
            capture.known.update(zip(outputs, flat(function(*fill(template[0], held), **fill(template[1], held)))))
        results = [capture.wrap(v) for v in outputs]
        capture.array_writes.called(function, args, kwargs, results, single)
        return abstract_eval.unflatten(structure, results)

    def _tried(self, asked: Any, name: str, function: Callable[..., Any], template: Tuple[Any, Any], operands: List[Value],
               device: str) -> _Given:
        """What a call gives on made-up contents.  Operands whose size matters are replaced by checked ones."""
        capture = self.capture
        types, wide = capture.number_checks.hold(function, name, template, operands)
        if wide is not None:
            function = capture.number_checks.widen(function, operands, types, wide)
        sizes = NewSizes(capture, name, operands)
        held = [capture.known[v] for v in operands] if all(v in capture.known for v in operands) else None
        infer = functools.partial(abstract_eval.infer_known, held) if held else abstract_eval.infer
        tried = types
        try:
            types = abstract_eval.with_known(types, operands, capture.known)
            if function in (write_at, write_at_checked):
                types = with_least(capture, types, operands)
            tried = capture.placement.typing(function, types, device)
            structure, found, extents = infer_sized(infer, function, template, tried, sizes)
        except Exception as error:      # whatever the call raises for contents that are made up, or wrong
            if not _may_fit(function, error, operands):
                self._abort_typing(_shown(asked, name), error)
            function, structure, found, extents = write_at_checked, LEAF, (operands[0].type,), ()     # it leaves the type as it is
        found = capture.placement.types(found, types, tried, device)
        if any([isinstance(t, Dynamic) or isinstance(t, Tensor) and t.dtype.kind not in "biufc" for t in found]):
            capture.abort(f"{_shown(asked, name)} gives objects")
        given = [v.type for v in operands]
        may_fail = _may_fail(function, name, given, extents) or name in ("array", "asarray") and _makes_ints_of_floats(given, found)
        return _Given(function, structure, found, extents, sizes, held, may_fail)

    def _add(self, asked: Any, call: Call, operands: List[Value], attrs: Dict[str, Any], may_fail: bool,
             like: Optional[Learned]) -> Tuple[Value, ...]:
        """The results of a call, in the graph: as ops, or as one node.  like: what has been learned of such calls."""
        if may_fail:
            self.capture.effects.store_writes()
        self.capture.event("staged", f"numpy {call.name}")
        op = host.sized_call if "extents" in attrs else host.checked_call if may_fail else host.numpy_call
        lowered = self._lowered(asked, call, operands, attrs["types"], like) if op is host.numpy_call or not operands else None
        if lowered is not None:
            return (lowered,)
        add = self.capture.builder.add if like is None else functools.partial(self.capture.builder.place, types=attrs["types"])
        return add(op, tuple(operands), {"call": call, **attrs}, name=identifier(call.name))

    def _abort_typing(self, shown: str, error: Exception) -> Any:
        """Stop because what a call gives cannot be learned from trials on made-up contents."""
        if error.args == (abstract_eval.DEPENDS,):
            self.capture.abort(f"{abstract_eval.DEPENDS}: {shown}")
        self.capture.abort(f"{shown} fails on the placeholder contents of the capture "
                   f"({type(error).__name__}: {in_users_words(str(error))})")

    def _lowered(self, function: Any, call: Call, operands: List[Value], found: Sequence[Any], like: Optional[Learned]) \
            -> Optional[Value]:
        """The result of a call of NumPy as ops, if there are such; what they give is differentiated no further.

        Not under decisions and in loops on array values: an array that is carried may be the caller's, which has identity.
        """
        if not call.single or len(found) != 1 or self.capture.staging.depth or self.capture.staging.in_loop:
            return None
        builder, variables = self.capture.builder, self.capture.gradients.variables
        differentiated = tuple([v in variables for v in operands])
        if like is not None and differentiated in like.ops:
            ops = like.ops[differentiated]
            return None if ops is None else ops.add(builder, operands)
        start = len(builder.nodes)
        values = [OPS["stop_gradient"](v) if is_one else v for v, is_one in zip(operands, differentiated)]
        made = lower_numpy(function, fill(call.args, values), fill(call.kwargs, values), found[0])
        if made is None and not operands:
            made = fixed(call)
        is_exact = made is not None and made.type == found[0] and made not in values
        if like is not None:
            like.learn_ops(differentiated, builder.nodes[start:], operands, made if is_exact else None)
        if not is_exact:
            del builder.nodes[start:]
        return made if is_exact else None

    def _is_plain_number(self, item: Any, function: Callable) -> bool:
        """Whether an array is certain to be convertible to a number, which only the run knows."""
        return type(item) is SymbolicArray and item.type.shape == () and item.value not in self.capture.known and \
            (function is not int or item.dtype.kind in "iub")


def _may_fail(function: Any, name: str, types: List[Any], extents: Any) -> bool:
    """Whether a call may fail on what its operands hold."""
    return type(function) is not Attempt and (
        bool(extents) or abstract_eval.may_raise(function, name, types) or
        may_be_empty(types) and not isinstance(function, np.ufunc))


def _makes_ints_of_floats(types: Sequence[Any], found: Sequence[Any]) -> bool:
    """Whether an array of ints is made of floats of Python's, some of which are no ints."""
    return any([isinstance(t, Scalar) and t.kind == "py_float" for t in types]) and \
        any([isinstance(t, Tensor) and t.dtype.kind in "iu" for t in found])


def _callable(function: Any) -> Tuple[str, Callable]:
    if isinstance(function, tuple):
        kind, name = function
        return name, Method(name) if kind == "method" else Attribute(name)
    return getattr(function, "__name__", type(function).__name__), function


def _shown(function: Any, name: str) -> str:
    """What the user wrote to call a function of NumPy's."""
    if isinstance(function, tuple):
        return f"`.{name}{'()' if function[0] == 'method' else ''}` of an array"
    if function in (write_at, write_at_checked):
        return "writing into an array"
    if function is flat_item:
        return "an item of `.flat` of an array"
    module = getattr(function, "__module__", None) or ("numpy" if isinstance(function, np.ufunc) else "")
    return f"`np.{'linalg.' if module == 'numpy.linalg' else ''}{name}`" if module.startswith("numpy") else f"`{name}`"


def _may_fit(function: Any, error: Exception, operands: Sequence[Value]) -> bool:
    """Whether a write that fails on made-up contents may fit in a run: whole numbers or sizes that only the run knows decide."""
    types = [v.type for v in operands]
    return function in (write_at, write_at_checked) and isinstance(error, (IndexError, ValueError)) and \
        (may_be_empty(types) or any([isinstance(t, Scalar) and t.dtype.kind in "iu" for t in types]))
