"""Learning from one eager call what only a real run can tell: the types of the results of user-defined functions."""
from __future__ import annotations

import contextlib
import threading
from typing import Any, Dict, Iterator, Tuple

import chainer

from ..ir.types import type_of

_lock = threading.Lock()


@contextlib.contextmanager
def observing(found: Dict[Tuple, Tuple]) -> Iterator[None]:
    """Record, per applied function, (class, position, input types) → output types into ``found``."""
    count = [0]
    thread = threading.get_ident()
    with _lock:
        apply = chainer.FunctionNode.apply

        def watch(node: chainer.FunctionNode, inputs: Any) -> Any:
            if threading.get_ident() != thread:
                return apply(node, inputs)
            position, count[0] = count[0], count[0] + 1
            types = tuple(type_of(chainer.as_array(x)) for x in inputs)
            implementation = node.function if isinstance(node, chainer.function.FunctionAdapter) else node
            outputs = apply(node, inputs)
            found[type(implementation), position, types] = tuple(type_of(y.array) for y in outputs)
            return outputs
        chainer.FunctionNode.apply = watch
        try:
            yield
        finally:
            chainer.FunctionNode.apply = apply
