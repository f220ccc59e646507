"""Lowerings of `chainer.functions.math`: what SciPy computes."""
from __future__ import annotations

from typing import Any, Optional

import numpy as np
from chainer.functions.math.digamma import DiGamma
from chainer.functions.math.erf import Erf
from chainer.functions.math.erfc import Erfc
from chainer.functions.math.erfcinv import ErfcInv
from chainer.functions.math.erfcx import Erfcx
from chainer.functions.math.erfinv import ErfInv
from chainer.functions.math.lgamma import LGamma
from chainer.functions.math.log_ndtr import LogNdtr
from chainer.functions.math.ndtr import Ndtr
from chainer.functions.math.ndtri import Ndtri
from chainer.functions.math.polygamma import PolyGamma
from chainer.functions.math.zeta import Zeta

from .. import ops
from ..ir.graph import Value
from ..ops.special_functions import WITHOUT_SCIPY
from .registry import Lowering, are_fixed, has_scipy, is_number, lowers, size_of


def _same_function(name: str) -> Lowering:
    def lowering(node: Any, x: Value) -> Optional[Value]:
        return ops.special(x, function=name) if has_scipy() or _lowered_without_scipy(node, name, x) else None
    return lowering


def _lowered_without_scipy(node: Any, name: str, x: Value) -> bool:
    """Whether Chainer computes it element by element, of which it warns once; it refuses arrays without elements."""
    if name not in WITHOUT_SCIPY or not are_fixed(x.shape) or size_of(x) == 0:
        return False
    type(node)().forward_cpu((np.zeros(1, x.dtype),))           # warns, if no call has done so yet
    return True


for _class, _name in {Erf: "erf", Erfc: "erfc", ErfcInv: "erfcinv", Erfcx: "erfcx", ErfInv: "erfinv", LGamma: "gammaln",
                      LogNdtr: "log_ndtr", Ndtr: "ndtr", Ndtri: "ndtri", DiGamma: "digamma"}.items():
    lowers(_class)(_same_function(_name))


@lowers(PolyGamma)
def polygamma(node: Any, n: Value, x: Value) -> Optional[Value]:
    # the gradient has the shape of x, whatever that of n
    fits = n.shape == x.shape or n.shape == ()
    return ops.special(n, x, function="polygamma") if fits and has_scipy() else None


@lowers(Zeta)
def zeta(node: Any, x: Value) -> Optional[Value]:
    return ops.special(x, function="zeta", order=node._x) if is_number(node._x) and has_scipy() else None
