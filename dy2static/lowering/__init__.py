"""How Chainer's functions become primitive ops; what has no lowering stays whole, as an opaque node."""
from __future__ import annotations

from . import activation, basic_math, connection, loss

__all__ = ["activation", "basic_math", "connection", "loss"]
