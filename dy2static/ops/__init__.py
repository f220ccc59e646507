"""Every primitive op, by name: ``from dy2static import ops; ops.tanh(x)``.  One `declare` per op, grouped in files."""
from __future__ import annotations

from ..ir.op import OPS, OpDef
from . import (
    activation,
    batch_normalization,
    bits,
    broadcasting,
    channel_blocks,
    comparison,
    contraction,
    control,
    convolution,
    creation,
    cumulative,
    decorrelation,
    elementwise,
    entropies,
    fast_random,
    first_gradients,
    gathering,
    gradient_rules,
    images,
    indexing,
    linear_algebra,
    lists,
    loss,
    movement,
    named_axes,
    normalization,
    parts,
    pooling,
    reduction,
    regions,
    scalar,
    second_gradients,
    sequences,
    slicing,
    softmax_loss,
    sorting,
    sparse,
    special_functions,
    transfers,
    trigonometry,
)
from .creation import ones_like, zeros_like
from .slicing import normal_index

__all__ = ["activation", "batch_normalization", "bits", "broadcasting", "channel_blocks", "comparison", "contraction",
           "control", "convolution", "creation", "cumulative", "decorrelation", "elementwise", "entropies",
           "fast_random", "first_gradients", "gathering", "gradient_rules", "images", "indexing", "linear_algebra",
           "lists", "loss", "movement", "named_axes", "normal_index", "normalization", "ones_like", "parts",
           "pooling", "reduction", "regions", "scalar", "second_gradients", "sequences", "slicing", "softmax_loss",
           "sorting", "sparse", "special_functions", "transfers", "trigonometry", "zeros_like"]


def __getattr__(name: str) -> OpDef:
    """The op of this name, so that a new op is in reach as soon as its file declares it."""
    try:
        return OPS[name]
    except KeyError:
        raise AttributeError(f"no op is named {name!r}") from None
