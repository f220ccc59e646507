"""Calls that generated code makes with Python objects: templates with holes for operands, and how results are taken apart."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import chainer
import chainer.functions as F
import numpy as np


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


_PLAIN = (bool, int, float, str, type(None), type(Ellipsis), type, np.dtype)


def frozen(template: Any) -> Any:
    """A key that tells a template from others, with operands by their numbers.  Raises TypeError where nothing simple does."""
    kind = type(template)
    if kind is Hole:
        return Hole, template.index
    if kind in (tuple, list):
        return kind, tuple([frozen(part) for part in template])
    if kind is dict:
        return kind, tuple([(name, frozen(part)) for name, part in template.items()])
    if kind is slice:
        return kind, tuple([frozen(part) for part in (template.start, template.stop, template.step)])
    if isinstance(template, np.number):
        return kind, template.tobytes()
    if not isinstance(template, _PLAIN):
        raise TypeError(f"{template!r} is no plain value")
    return kind, repr(template) if kind is float else template


def form_of(template: Any) -> Any:
    """What tells a template from others, with operands by their numbers; None where nothing simple does."""
    try:
        return frozen(template)
    except TypeError:
        return None


def _shown(template: Any, show: Callable[[Any], str]) -> str:
    if type(template) is Hole:
        return f"{{{template.index}}}"
    if type(template) is tuple:
        return f"({', '.join([_shown(part, show) for part in template])}{',' if len(template) == 1 else ''})"
    if type(template) is list:
        return f"[{', '.join([_shown(part, show) for part in template])}]"
    if type(template) is slice:
        return ":".join(["" if part is None else _shown(part, show) for part in (template.start, template.stop, template.step)])
    return show(template)


class Call:
    """A call with holes: ``function(*args, **kwargs)``; its results are flattened by ``flatten``.

    single: the result is one value, not a tuple or list of values.
    within: ``within(function, args, kwargs)`` calls it from frames at the user's lines; None where these are never seen.
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

    def of(self, function: Callable[..., Any], args: Optional[Tuple[Any, ...]] = None) -> "Call":
        """The call of another function, whose result is of the same form.  args: its arguments, if they are others."""
        return Call(function, self.args if args is None else args, self.kwargs if args is None else {}, self.flatten,
                    self.name, self.single, trusted=self.trusted)

    def shown(self, show: Callable[[Any], str]) -> str:
        """The call as a reader would write it, ``gt({0}, 5)``, with its operands by their numbers; show: the text of a constant."""
        args = [_shown(part, show) for part in self.args]
        return f"{self.name}({', '.join([*args, *(f'{name}={_shown(part, show)}' for name, part in self.kwargs.items())])})"

    def __call__(self, *operands: Any) -> Any:
        function = fill(self.function, operands)
        if self.within is not None:
            return self.flatten(self.within(function, fill(self.args, operands), fill(self.kwargs, operands)))
        return self.flatten(function(*fill(self.args, operands), **fill(self.kwargs, operands)))


class Report(Call):
    """``chainer.report`` to a reporter of Chainer's own: it stores values by their names, and cannot fail."""

    __slots__ = ()


class StateCall(Call):
    """A call that the user did not write: it stores a pending write, or makes a Variable, before a host call can see it."""

    __slots__ = ()


class Method:
    """A method as a function of its object."""

    def __init__(self, name: str):
        self.name = self.__name__ = self.method = name

    def __call__(self, owner: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(owner, self.name)(*args, **kwargs)


class Attribute:
    """An attribute as a function of its object."""

    def __init__(self, name: str):
        self.name = self.__name__ = self.attribute = name

    def __call__(self, owner: Any) -> Any:
        return getattr(owner, self.name)


class Leaf:
    """The place of a leaf in a structure."""


LEAF = Leaf()


def flatten(result: Any) -> Tuple[Any, List[Any]]:
    """The structure of a result (tuples and lists of leaves) and its leaves in order."""
    if type(result) in (tuple, list) or hasattr(result, "_fields"):
        parts = [flatten(item) for item in result]
        kind = getattr(type(result), "_make", type(result))
        return kind([p[0] for p in parts]), [leaf for p in parts for leaf in p[1]]
    if result is None:
        return None, []
    return LEAF, [result]


def flat(result: Any) -> List[Any]:
    """The leaves of a nested result, in order."""
    return flatten(result)[1]


def as_it_is(result: Any) -> List[Any]:
    """What a call gives, as its only result."""
    return [result]


def nothing(result: Any) -> List[Any]:
    """The results of a call that gives none."""
    return []


class EmptyCall:
    """Calls a function of lists on an empty list, for the exception that it raises."""

    def __init__(self, function: Callable):
        self.function = function

    def __call__(self) -> None:
        self.function([])

    def __eq__(self, other: Any) -> bool:
        return type(other) is EmptyCall and self.function is other.function

    def __hash__(self) -> int:
        return hash(self.function)


class EmptyStack:
    """The array of an empty list of arrays of this shape and dtype."""

    def __init__(self, shape: Tuple, dtype: Any):
        self.shape, self.dtype = tuple(shape), dtype

    def __call__(self) -> np.ndarray:
        return np.empty((0, *self.shape), self.dtype)

    def __eq__(self, other: Any) -> bool:
        return type(other) is EmptyStack and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))


def variables_of(stacked: chainer.Variable) -> List[chainer.Variable]:
    """The rows of a Variable as a list of Variables."""
    return list(F.separate(stacked, axis=0)) if len(stacked) else []
