"""Lowerings of the functions of `chainer.distributions`."""
from __future__ import annotations

from typing import Any, Optional

from chainer.distributions.utils import ModifiedXLogX

from .. import ops
from ..ir.graph import Value
from .registry import lowers, symbolic_value


@lowers(ModifiedXLogX)
def modified_x_log_x(node: Any, x: Value) -> Optional[Value]:
    # the logarithm is a Variable in an attribute: second gradients go through it
    log_x = symbolic_value(node._logx)
    return None if log_x is None or log_x.type != x.type else ops.x_times_log(x, log_x)
