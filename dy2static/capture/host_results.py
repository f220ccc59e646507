"""What host calls give: known, where it matters, from an eager call that was observed."""
from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..heap.object_shadows import ShadowBase
from ..runtime.host_calls import LEAF
from ..runtime.observed import OTHER, VARYING_CODES, Observed, Untouched, look
from ..symbolic.host_objects import BoundHostMethod, SymbolicObject
from ..symbolic.observe import described
from ..threads.quiet import quiet
from .purity import is_plain, only_computes

if TYPE_CHECKING:
    from .protocols import Capture

#: What functions with a cache are tried with: values that are known and never change.
_VALUES = (type(None), bool, int, float, str)

_NOT_AT_ONCE = 0x20 | 0x80 | 0x200          # generators, coroutines, and both at once


class HostResults:
    """Of one capture: which host calls gave something of which only a run can tell what it is.

    observed: what earlier calls gave.  codes: of functions of which that is not known yet.  needed: whether the capture stopped
    because of such a result.
    """

    def __init__(self, observed: Mapping[Tuple, Any]):
        self.observed = observed
        self.codes: List[types.CodeType] = []
        self.needed = False
        self.start_again()

    def start_again(self) -> None:
        """No call has been made yet."""
        self.counts: Dict[int, int] = {}

    def seen(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], name: str,
             pure: bool) -> Tuple[Optional[Observed], Optional[Untouched]]:
        """How the result of this host call is unpacked, and what checks that the Variables it gets stay as they are.

        The first is None where the result stays an object that only the host can use; the second where the Variables changed.
        """
        is_cached = isinstance(function, functools._lru_cache_wrapper)
        is_method = not is_cached and not isinstance(function, types.FunctionType)
        function = _python_function(function)
        if function is None or function.__code__.co_flags & _NOT_AT_ONCE or function.__code__ in VARYING_CODES:
            return None, None
        code = function.__code__
        position = self.counts[id(code)] = self.counts.get(id(code), -1) + 1
        given = (*args, *kwargs.values())
        found = self._found(code, position, *described((*given, *_defaults(function, len(args) + is_method, kwargs))))
        if not found and is_cached and pure and all(type(item) in _VALUES for item in given):
            found = _tried(function, args, kwargs)      # an eager call may find the result in the cache
        if not found:
            self.codes.append(code)
        untouched = Untouched(code, name) if found and all(was for _, was in found) else None
        if not found or any(kind != found[0][0] for kind, _ in found):
            return None, untouched
        pure = pure and not any(isinstance(item, (list, dict)) for item in given)       # which it may give back
        kind = found[0][0] if pure else _without_containers(found[0][0])
        return None if kind == OTHER else Observed(kind, code, name, pure), untouched

    def _found(self, code: types.CodeType, position: int, arrays: Tuple, plain: Tuple) -> List[Tuple[Any, bool]]:
        """What was observed: of this call, or else of others; with several numbers, for it may depend on those."""
        known = self.observed.get((code, position, arrays, plain))
        if known is not None:
            return [known]
        others = [(key[3], seen) for key, seen in self.observed.copy().items() if key[0] is code and key[2] == arrays]
        same = [seen for other, seen in others if other == plain]
        return same or ([seen for _, seen in others] if len({other for other, _ in others}) > 1 else [])


def _tried(function: types.FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any]) -> List[Tuple[Any, bool]]:
    """What a function that only computes gives for these values, in the form of what is observed; empty if it raises."""
    try:
        with quiet():                                   # a run warns
            return [(look(function(*args, **kwargs))[0], True)]
    except Exception:                                   # whatever it raises: a run raises it, too
        return []


def _defaults(function: types.FunctionType, count: int, kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """The default values that a call with ``count`` positional arguments uses."""
    defaults, code = function.__defaults__ or (), function.__code__
    names = code.co_varnames[code.co_argcount - len(defaults):code.co_argcount]
    for place, (name, value) in enumerate(zip(names, defaults), code.co_argcount - len(defaults)):
        if place >= count and name not in kwargs:
            yield value
    yield from [value for name, value in (function.__kwdefaults__ or {}).items() if name not in kwargs]


def check_computing(capture: Capture, function: Any, is_numpy: bool, objects: Sequence[SymbolicObject]) -> None:
    """Stop where a function of Chainer or NumPy computes with the result of a host call: all that follows would be host calls.

    For NumPy, only if an eager call may tell the type of the result, so that the next capture knows it.
    """
    of_chainer = (getattr(function, "__module__", None) or "").startswith("chainer.functions.")
    if any(x.real is SymbolicObject.Missing for x in objects) and (of_chainer or is_numpy and capture.unknown.codes):
        name = f"{'F' if of_chainer else 'np'}.{function.__name__}"
        capture.abort(f"`{name}` computes with the result of a call that is not compiled", of_host=True,
                      hint="let that call return arrays, numbers, or tuples of these")


def is_pure(function: Any, given: Sequence[Any]) -> bool:
    """Whether a host call is seen to compute only."""
    if not all(map(is_plain, given)):
        return False
    if isinstance(function, types.MethodType) and isinstance(function.__self__, ShadowBase):
        return only_computes(function.__func__, function.__self__)
    return only_computes(_python_function(function) if isinstance(function, functools._lru_cache_wrapper) else function)


def _python_function(function: Any) -> Optional[types.FunctionType]:
    """The function whose frame there will be when this is called on the host."""
    if type(function) is BoundHostMethod and function.owner.real is not SymbolicObject.Missing:
        function = getattr(type(function.owner.real), function.method, None)
    elif isinstance(function, functools._lru_cache_wrapper):
        function = (function.real if type(function) is SymbolicObject else function).__wrapped__
    elif not isinstance(function, (types.FunctionType, types.MethodType, type)):
        kind = type(function.real if type(function) is SymbolicObject else function)
        function = next((part.__dict__["__call__"] for part in kind.__mro__ if "__call__" in part.__dict__), None)
    function = getattr(function, "__func__", function)
    return function if isinstance(function, types.FunctionType) else None


def _without_containers(kind: Any) -> Any:
    if type(kind) is not tuple:
        return kind
    return OTHER if kind[0] in (list, dict) else (kind[0], None, tuple(map(_without_containers, kind[2])))


def types_of(kind: Any) -> Tuple[Any, ...]:
    """The types of the leaves of a result."""
    if type(kind) is tuple:
        return tuple(leaf for part in kind[2] for leaf in types_of(part))
    return () if kind is None else (kind,)


def structure_of(kind: Any) -> Any:
    """How the leaves make a result, for `stand_ins.unflatten`."""
    if type(kind) is not tuple:
        return None if kind is None else LEAF
    parts = [structure_of(part) for part in kind[2]]
    return dict(zip(kind[1], parts)) if kind[0] is dict else getattr(kind[0], "_make", kind[0])(parts)
