"""Draws from NumPy's global generator in native code: its numbers, and its state afterwards.

The state of MT19937, which stands behind ``numpy.random``, is read and written where NumPy keeps it, under its lock.  Where
the generator is of another kind, or functions of ``numpy.random`` have been replaced, NumPy draws.  Normal numbers are always
drawn by NumPy: it keeps every other one where no other code can read it.
"""
from __future__ import annotations

import ctypes
import functools
import math
from typing import Any, Callable

import numpy as np

from ...ir.c_forms import c_constant
from ...ir.graph import Graph, Node
from .emitter import Emitter

#: Ops that native code draws for, and those that functions draw for that no Python stands behind, whose generator is their own.
NATIVE_DRAWS = ("random_uniform",)
STANDALONE_DRAWS = (*NATIVE_DRAWS, "random_between", "random_normal")

HEADER = '#include "dy2static_draws.h"\n'

#: What native code gives when it has drawn nothing, and NumPy is to do the whole.
_DECLINED = object()

_global = np.random.mtrand._rand                        # type: ignore[attr-defined]
_rand = np.random.rand


def draws(node: Node) -> bool:
    """Whether a node, or one inside it, draws where it is in C."""
    return any(inner.op.name in STANDALONE_DRAWS for inner in node.walk())


def graph_draws(graph: Graph) -> bool:
    """Whether a node of the graph does, at any level."""
    return any(map(draws, graph.nodes))


def write_draw(emitter: Emitter, node: Node) -> None:
    """Uniform numbers in [0, 1), or between two numbers, or numbers of the standard normal distribution."""
    (value,), attrs = node.outputs, node.attrs
    function = {"random_uniform": "dy_uniform", "random_between": "dy_between", "random_normal": "dy_normal"}[node.op.name]
    ends = [c_constant(attrs[key], value.dtype) for key in ("low", "high") if key in attrs]
    target = emitter.name(value) if value.ndim else f"&{emitter.local(value)}"
    if not value.ndim:
        emitter.line(f"double {emitter.local(value)};")
    emitter.line(f"{function}({', '.join([emitter.generator, target, str(math.prod(value.shape)), *ends])});")
    if not value.ndim and emitter.stored(value):
        emitter.line(f"{emitter.name(value)}[0] = {emitter.local(value)};")


def declining(*_: Any) -> Any:
    """What a native function calls that declines to run, in place of what answers then: the lock is held."""
    return _DECLINED


def drawing(native: Callable[..., Any], decline: Callable[..., Any], count: int) -> Callable[..., Any]:
    """How a native function that draws is called.

    native: takes the address of the generator's state behind its ``count`` inputs; where it declines, it has put the state
    back and gives what `declining` gives.  decline: answers then.
    """
    def call(*args: Any) -> Any:
        generator = _global._bit_generator
        if type(generator) is not np.random.MT19937 or np.random.rand is not _rand or not _is_known():
            return decline(*args)
        with generator.lock:
            result = native(*args[:count], generator.ctypes.state_address, *args[count:])
        return decline(*args) if result is _DECLINED else result
    return call


@functools.lru_cache(maxsize=None)
def _is_known() -> bool:
    """Whether the state of MT19937 is laid out as the header says: compared with a state that is known."""
    generator = np.random.MT19937(1)
    generator.random_raw(3)
    state = generator.state["state"]
    words = (ctypes.c_uint32 * 624).from_address(generator.ctypes.state_address)
    position = ctypes.c_int32.from_address(generator.ctypes.state_address + ctypes.sizeof(words)).value
    return bool(np.array_equal(words, state["key"])) and position == state["pos"] == 2
