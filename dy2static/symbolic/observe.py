"""Learning from one eager call what only a real run can tell: types of results of user-defined functions and of host calls."""
from __future__ import annotations

import contextlib
import sys
import types
from typing import Any, Callable, Dict, Iterable, Iterator, List, Sequence, Tuple

import chainer
import numpy as np

from ..ir.types import type_of
from ..runtime.hooks import stage
from ..runtime.observed import look
from .patches import patched
from .values import SymbolicArray, SymbolicVariable


class Observer:
    """Records the output types of every function that is applied, by class, position in the call and input types."""

    def __init__(self, found: Dict[Tuple, Any]):
        self.found, self.count = found, 0

    def apply(self, apply: Callable, node: chainer.FunctionNode, inputs: Any) -> Any:
        """Apply the function and take down what it gave."""
        position, self.count = self.count, self.count + 1
        types = tuple(type_of(chainer.as_array(x)) for x in inputs)
        implementation = node.function if isinstance(node, chainer.function.FunctionAdapter) else node
        outputs = apply(node, inputs)
        self.found[type(implementation), position, types] = tuple(type_of(y.array) for y in outputs)
        return outputs


class Watch:
    """A profile function that records what calls of some functions give.

    For (code, position in the call, types of its arrays, its plain values) it records the kind of the result, and whether the
    Variables that the call got are as they were.
    """

    def __init__(self, found: Dict[Tuple, Any], codes: Sequence[types.CodeType]):
        self.found, self.codes = found, {id(code): code for code in codes}
        self.counts = dict.fromkeys(self.codes, 0)
        self.open: Dict[types.FrameType, Tuple] = {}

    def __call__(self, frame: types.FrameType, event: str, result: Any) -> None:
        code = frame.f_code
        if id(code) not in self.codes or stage.capture is not None:
            return
        if event == "call":
            count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & _VARARGS) + bool(code.co_flags & _VARKEYWORDS)
            given = frame.f_locals
            values = [given[name] for name in code.co_varnames[:count] if name in given]
            self.open[frame] = id(code), self.counts[id(code)], *described(values), _pictures(values)
            self.counts[id(code)] += 1
        elif event == "return" and frame in self.open:
            number, position, arrays, plain, pictures = self.open.pop(frame)
            untouched = all(_picture(variable) == before for variable, before in pictures)
            self.found[self.codes[number], position, arrays, plain] = look(result)[0], untouched


def _pictures(values: Iterable[Any]) -> List[Tuple[chainer.Variable, Tuple]]:
    return [(item, _picture(item)) for item in _flat(values) if isinstance(item, chainer.Variable)]


def _picture(variable: chainer.Variable) -> Tuple:
    """What a function could change of a Variable."""
    array, gradient = variable.array, variable.grad_var
    return (id(array), None if array is None else array.tobytes(), id(variable.creator_node), variable.requires_grad,
            id(gradient), None if gradient is None or gradient.array is None else gradient.array.tobytes())


def _flat(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        if type(item) in (tuple, list):
            yield from _flat(item)
        elif type(item) is dict:
            yield from _flat(item.values())
        else:
            yield item


_VARARGS, _VARKEYWORDS = 4, 8


def described(given: Iterable[Any]) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    """The types of the arrays and Variables among what a function is given, and the numbers and texts, both in no order."""
    found, plain = [], []
    for item in _flat(given):
        if isinstance(item, SymbolicVariable):
            found.append(str(item.value.type))
        elif type(item) is SymbolicArray:
            found.append(str(item.type))
        elif isinstance(item, chainer.Variable) and item.array is not None or isinstance(item, (np.ndarray, np.generic)):
            found.append(str(type_of(chainer.as_array(item))))
        elif type(item) in (bool, int, float, str):
            plain.append(repr(item))
    return tuple(sorted(found)), tuple(sorted(plain))


@contextlib.contextmanager
def observing(found: Dict[Tuple, Any], codes: Sequence[types.CodeType] = ()) -> Iterator[None]:
    """Let what this thread applies inside the block be taken down in ``found``, and what functions with these codes give."""
    profiles = bool(codes) and sys.getprofile() is None
    with patched():
        saved, stage.observer = stage.observer, Observer(found)
        if profiles:
            sys.setprofile(Watch(found, codes))
        try:
            yield
        finally:
            stage.observer = saved
            if profiles:
                sys.setprofile(None)
