"""The user's own lowerings: of FunctionNode classes to ops, and of callables to what is compiled in their place."""
from __future__ import annotations

import types
from typing import Any, Callable, Dict, Optional, Tuple, TypeVar

import chainer

from ..errors import SignatureError
from ..ir.graph import Value
from ..runtime.staticness import StaticCallable
from .registry import LOWERINGS

#: What a decorator gives back as it is.
Function = TypeVar("Function", bound=Callable[..., Any])

#: By the identity of the class or callable, which is kept.
_REGISTERED: Dict[int, Tuple[Any, Callable[..., Any]]] = {}

_FUNCTION_CLASSES = (chainer.FunctionNode, chainer.Function)


def register_lowering(target: Callable[..., Any]) -> Callable[[Function], Function]:
    """Return a decorator that makes a function the lowering of a class of Chainer functions, or of a callable.

    target: a class derived from `chainer.FunctionNode` or `chainer.Function`: the lowering is called as
        ``lowering(node, *values)`` and returns a value of the graph, a tuple of them, or None to leave the function whole.
        Numbers, sizes and arrays in the node's attributes may be operands (``x * node.beta``); no gradient goes through them.
        Or a callable that compiled code calls (a C function, a ufunc, an object with ``__call__``): the lowering is called
        with the same arguments and compiled in its place.  It returns the same result, or NotImplemented to leave the call
        unchanged.

    A second lowering of the same target replaces the first.  Existing programs do not change.
    Raises `SignatureError` for anything else, and for classes for which dy2static itself has a lowering.
    """
    _check(target)

    def register(lowering: Function) -> Function:
        if not callable(lowering) or isinstance(lowering, type):
            raise SignatureError(f"a lowering is a function, not {lowering!r}")
        _REGISTERED[id(target)] = target, _checked(target, lowering) if isinstance(target, type) else lowering
        return lowering
    return register


def registered(target: Any) -> Optional[Callable[..., Any]]:
    """The user's lowering of a class or callable; None if there is none."""
    found = _REGISTERED.get(id(target))
    return None if found is None else found[1]


def _check(target: Any) -> None:
    name = getattr(target, "__name__", repr(target))
    if isinstance(target, StaticCallable):
        raise SignatureError(f"{target!r} is compiled already", hint="register a lowering for what it calls")
    if isinstance(target, types.MethodType):
        raise SignatureError(f"{name} is a method of one object", hint="register a lowering for the function in its class")
    if not isinstance(target, type):
        if not callable(target):
            raise SignatureError(f"a lowering is for a class of functions or a callable, not {target!r}")
        return
    if not issubclass(target, _FUNCTION_CLASSES):
        raise SignatureError(f"{name} is no class of Chainer functions", hint="classes derived from FunctionNode have lowerings")
    if target in _FUNCTION_CLASSES or target is chainer.function.FunctionAdapter:
        raise SignatureError(f"{name} is the base of all functions")
    if target in LOWERINGS:
        raise SignatureError(f"{name} has a lowering already", hint="a class derived from it may have another one")


def _checked(cls: type, lowering: Callable[..., Any]) -> Callable[..., Any]:
    """The lowering, whose results are looked at: a value of the graph cannot be made of anything else."""
    def lowered(node: Any, *values: Value) -> Any:
        found = lowering(node, *values)
        outputs = found if isinstance(found, tuple) else (found,)
        if found is not None and not (outputs and all(isinstance(y, Value) for y in outputs)):
            raise SignatureError(f"the lowering of {cls.__name__} gave {found!r}",
                                 hint="it gives a value, a tuple of values, or None; ops are in `dy2static.ops`")
        return found
    return lowered
