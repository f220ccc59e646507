"""What the function hooks of Chainer's that are registered see of a compiled call."""
from __future__ import annotations

import contextlib
from typing import Any, Iterator, Tuple

import chainer

from .node import CompiledFunction
from .segment import Segment

#: Hooks that only take the time: they need not see the functions inside.
TIMING_HOOKS = (chainer.function_hooks.TimerHook, chainer.function_hooks.CUDAProfileHook,
                chainer.function_hooks.CupyMemoryProfileHook)


def only_time() -> bool:
    """Whether all registered hooks only take the time."""
    return all(type(hook) in TIMING_HOOKS for hook in chainer.get_function_hooks().values())


@contextlib.contextmanager
def seen_as_one_function(name: str, args: Tuple[Any, ...]) -> Iterator[None]:
    """Inside the block there are no hooks; they see it as the forward of one function."""
    registered = chainer.get_function_hooks()
    hooks = dict(registered)
    node, arrays = CompiledFunction(), tuple([x._data[0] for x in args if isinstance(x, chainer.Variable)])
    node.segment = Segment(name, None)
    for hook in hooks.values():
        hook.forward_preprocess(node, arrays)
    registered.clear()
    try:
        yield
    finally:
        registered.update(hooks)
    for hook in hooks.values():
        hook.forward_postprocess(node, arrays)
