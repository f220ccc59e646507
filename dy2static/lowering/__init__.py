"""How Chainer's functions become primitive ops; what has no lowering stays whole, as an opaque node."""
from __future__ import annotations

from . import (
    activation,
    array,
    basic_math,
    connection,
    distributions,
    evaluation,
    images,
    indexing,
    linear_algebra,
    loss,
    math,
    noise,
    normalization,
    pooling,
    reasons,
    rnn,
    sequences,
    special,
)

__all__ = ["activation", "array", "basic_math", "connection", "distributions", "evaluation", "images", "indexing",
           "linear_algebra", "loss", "math", "noise", "normalization", "pooling", "reasons", "rnn", "sequences", "special"]
