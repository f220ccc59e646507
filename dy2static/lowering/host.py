"""Ops that run Python objects: NumPy calls on arrays, calls that stay on the host, and Chainer functions kept whole."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..ir.op import declare


class Hole:
    """The place of the i-th operand in a template."""

    __slots__ = ("index",)

    def __init__(self, index: int):
        self.index = index


class MethodOf:
    """A method of the object that a hole stands for."""

    __slots__ = ("hole", "name")

    def __init__(self, hole: Hole, name: str):
        self.hole, self.name = hole, name


def fill(template: Any, operands: Sequence[Any]) -> Any:
    """The template with its holes filled: tuples, lists, dicts and slices are rebuilt, everything else is kept."""
    kind = type(template)
    if kind is Hole:
        return operands[template.index]
    if kind is tuple:
        return tuple([fill(item, operands) for item in template])
    if kind is list:
        return [fill(item, operands) for item in template]
    if kind is dict:
        return {fill(key, operands) if type(key) is Hole else key: fill(item, operands) for key, item in template.items()}
    if kind is slice:
        return slice(fill(template.start, operands), fill(template.stop, operands), fill(template.step, operands))
    if kind is MethodOf:
        return getattr(operands[template.hole.index], template.name)
    if isinstance(template, tuple):
        return kind._make([fill(item, operands) for item in template])
    return template


class Call:
    """A call with holes: ``function(*args, **kwargs)``; its results are flattened by ``flatten``.

    single: the result is one value, not a tuple or list of values.
    within: ``within(function, args, kwargs)`` calls it from frames at the user's lines; None where nobody would look.
    trusted: its results are of the types that the node says.  A file may say anything.
    looks: it may read, and keep, what objects of the user's hold.  keeps: it may keep Variables that it is given.
    """

    __slots__ = ("function", "args", "kwargs", "flatten", "name", "single", "within", "trusted", "looks", "keeps")

    def __init__(self, function: Any, args: Any, kwargs: Any, flatten: Callable[[Any], List[Any]], name: str,
                 single: bool = False, within: Optional[Callable[[Any, Tuple, Dict[str, Any]], Any]] = None,
                 trusted: bool = True, looks: bool = True, keeps: bool = True):
        self.function, self.args, self.kwargs, self.flatten, self.name = function, args, kwargs, flatten, name
        self.single, self.within, self.trusted, self.looks, self.keeps = single, within, trusted, looks, keeps

    def __repr__(self) -> str:
        return self.name

    def __call__(self, *operands: Any) -> Any:
        function = fill(self.function, operands)
        if self.within is not None:
            return self.flatten(self.within(function, fill(self.args, operands), fill(self.kwargs, operands)))
        return self.flatten(function(*fill(self.args, operands), **fill(self.kwargs, operands)))


class Report(Call):
    """``chainer.report`` to a reporter of Chainer's own: it stores values by their names, and cannot fail."""

    __slots__ = ()


class StateCall(Call):
    """What no code of the user's asked for: storing what was written, or making a Variable, before a host call looks."""

    __slots__ = ()


def _declared_types(*_: Any, types: Tuple, **__: Any) -> Tuple:
    return types


def _run(*operands: Any, call: Call, types: Tuple) -> Any:
    results = call(*operands)
    return results[0] if len(types) == 1 else results


_ATTRS: Dict[str, Any] = {"call": None, "types": ()}

#: A NumPy call outside Chainer's graph (on ``x.array``): pure, no gradient.
numpy_call = declare("numpy_call", "*operands", _ATTRS, kind="opaque", infer=_declared_types, numpy=_run)

#: The same for one that may fail on what its operands hold: it runs even if nothing needs its result.
checked_call = declare("checked_call", "*operands", _ATTRS, kind="opaque", infer=_declared_types, numpy=_run, effect=True)

#: One that gives arrays of sizes that only the run knows: ``extents`` names them, (symbol, output, axis).
sized_call = declare("sized_call", "*operands", {**_ATTRS, "extents": ()}, kind="opaque", infer=_declared_types,
                     numpy=lambda *operands, call, types, extents: _run(*operands, call=call, types=types), effect=True)

#: Anything else: runs at every call, once, in program order.
host_call = declare("host_call", "*operands", _ATTRS, kind="opaque", infer=_declared_types, numpy=_run, effect=True)
