"""What communicators of ChainerMN do, on arrays alone."""
from __future__ import annotations

from typing import Callable, Tuple

import chainer
import numpy as np


def mean_of(average: Callable[[chainer.Link, bool], None], zero_fill: bool, *gradients: np.ndarray) -> Tuple[np.ndarray, ...]:
    """The means over all processes of these gradients: ``multi_node_mean_grad`` of a communicator, for parameters in this order."""
    target = chainer.Link()
    for number, gradient in enumerate(gradients):
        target.add_param(f"p{number:06}", gradient.shape, gradient.dtype, 0)
        getattr(target, f"p{number:06}").grad = gradient.copy()
    average(target, zero_fill)
    return tuple([param.grad for _, param in sorted(target.namedparams())])
