"""Random lazy arrays: NumPy's Generator, whose numbers are drawn in the order in which the calls are written.

A call draws at once, so that the order in which expressions are computed does not matter, and numbers are those that NumPy's
Generator gives for the same calls.
"""
from __future__ import annotations

import sys
from typing import Any, Callable, List

import numpy as np

from .protocols import called

_frame = sys._getframe


class Generator:
    """As ``numpy.random.Generator``, with lazy arrays in place of arrays.  `default_rng` makes one.

    Methods have NumPy's arguments, and raise what NumPy's raise.  A lazy array among the arguments is computed.  CaptureError where
    gradients would have to go through a draw.
    """

    def __init__(self, bit_generator: Any):
        self._generator = np.random.Generator(bit_generator)

    @property
    def bit_generator(self) -> Any:
        """The source of bits: its ``state`` can be read and set."""
        return self._generator.bit_generator

    def spawn(self, n_children: int) -> List["Generator"]:
        """Some generators whose numbers do not depend on what this one draws (NumPy 1.25 or later)."""
        return [Generator(child.bit_generator) for child in self._generator.spawn(n_children)]

    def __repr__(self) -> str:
        return f"lazy {self._generator!r}"


def default_rng(seed: Any = None) -> Generator:
    """A generator for a seed, a SeedSequence, a BitGenerator, or a generator, NumPy's or lazy: those go on to be shared.

    Raises what ``numpy.random.default_rng`` raises.
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(np.random.default_rng(seed).bit_generator)


def _drawing(name: str) -> Callable[..., Any]:
    def method(self: Generator, *args: Any, **kwargs: Any) -> Any:
        draw = getattr(self._generator, name)
        return called(draw, args, kwargs, _frame(1), is_lazy=False, is_changing=name == "shuffle")
    method.__name__ = name
    method.__doc__ = f"As ``numpy.random.Generator.{name}``."
    return method


for _name in dir(np.random.Generator):
    if not _name.startswith("_") and not hasattr(Generator, _name):
        setattr(Generator, _name, _drawing(_name))
