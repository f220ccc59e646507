"""Every primitive op, by name: ``from dy2static import ops; ops.tanh(x)``.  One `declare` per op, grouped in files."""
from __future__ import annotations

from ..ir.op import OPS, OpDef
from . import (
    activation,
    broadcasting,
    contraction,
    control,
    convolution,
    creation,
    cumulative,
    decorrelation,
    elementwise,
    fast_random,
    images,
    indexing,
    linear_algebra,
    lists,
    loss,
    movement,
    normalization,
    parts,
    pooling,
    reduction,
    regions,
    scalar,
    sparse,
    special_functions,
    trigonometry,
)
from .creation import ones_like, zeros_like
from .movement import normal_index

__all__ = ["activation", "broadcasting", "contraction", "control", "convolution", "creation",
           "cumulative", "decorrelation", "elementwise", "fast_random", "images", "indexing",
           "linear_algebra", "lists", "loss", "movement", "normal_index", "normalization",
           "ones_like", "parts", "pooling", "reduction", "regions", "scalar", "sparse", "special_functions",
           "trigonometry", "zeros_like"]


def __getattr__(name: str) -> OpDef:
    """The op of this name, so that a new op is in reach as soon as its file declares it."""
    try:
        return OPS[name]
    except KeyError:
        raise AttributeError(f"no op is named {name!r}") from None
