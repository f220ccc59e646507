"""Learning from one eager call what only a real run can tell: the types of the results of user-defined functions."""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, Tuple

import chainer

from ..ir.types import type_of
from ..runtime.hooks import stage
from .patches import patched


class Observer:
    """Takes down (class, position in the call, input types) → output types of every function that is applied."""

    def __init__(self, found: Dict[Tuple, Tuple]):
        self.found, self.count = found, 0

    def apply(self, apply: Callable, node: chainer.FunctionNode, inputs: Any) -> Any:
        """Apply the function and take down what it gave."""
        position, self.count = self.count, self.count + 1
        types = tuple(type_of(chainer.as_array(x)) for x in inputs)
        implementation = node.function if isinstance(node, chainer.function.FunctionAdapter) else node
        outputs = apply(node, inputs)
        self.found[type(implementation), position, types] = tuple(type_of(y.array) for y in outputs)
        return outputs


@contextlib.contextmanager
def observing(found: Dict[Tuple, Tuple]) -> Iterator[None]:
    """Let what this thread applies inside the block be taken down in ``found``."""
    with patched():
        saved, stage.observer = stage.observer, Observer(found)
        try:
            yield
        finally:
            stage.observer = saved
