"""Policies as tables: in order, the first line that is for a callable decides what is called for it."""
from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, Callable, List, NamedTuple, Sequence

if TYPE_CHECKING:
    from .protocols import Calls


class Rule(NamedTuple):
    """One line of a policy.

    what: the callables, and then: what becomes of a call, in the words of the documentation.  applies: ``applies(calls, function)``
    says whether the line is for a function.  callee: ``callee(calls, function)`` gives what is called for it.
    """

    what: str
    then: str
    applies: Callable[[Calls, Any], Any]
    callee: Callable[[Calls, Any], Callable[..., Any]]


def decided(rules: Sequence[Rule], calls: Calls, function: Any) -> Rule:
    """The first rule that is for a function; the last one is for all."""
    for rule in rules:
        if rule.applies(calls, function):
            break
    return rule


def named_by(function: Any) -> Any:
    """What a policy goes by for a function, whatever it is bound to; None for what it has to look at each time.

    Those are objects, methods that are written in C, and what communicates, which depends on ``chainer.config.train``.
    """
    kind = type(function)
    if kind is types.MethodType:
        function = function.__func__
        if type(function) is not types.FunctionType or (function.__module__ or "").startswith("chainermn."):
            return None
        return kind, function
    is_bound = kind is not types.FunctionType and (
        kind is not types.BuiltinFunctionType or type(function.__self__) not in (types.ModuleType, type(None)))
    return None if is_bound else function


def table(rules: Sequence[Rule]) -> List[str]:
    """The policy as lines of a table of the documentation."""
    return [f"| {rule.what} | {rule.then} |" for rule in rules]


def itself(calls: Calls, function: Any) -> Any:
    """Call the function as it is."""
    return function
