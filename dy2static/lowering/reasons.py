"""Why classes of Chainer's have no lowering: one line each.  ``docs/op_coverage.md`` prints them."""
from __future__ import annotations

from typing import Dict, Type

import chainer
from chainer.functions.array.as_strided import AsStrided
from chainer.functions.loss.ctc import ConnectionistTemporalClassification
from chainer.functions.loss.hinge import Hinge
from chainer.functions.theano.theano_function import TheanoFunction
from chainer.functions.util.forget import Forget

#: What stays whole, and why.  A class that is lowered is not in it.
OPAQUE_REASONS: Dict[Type, str] = {
    AsStrided: "reads the memory around the array, however that lies",
    ConnectionistTemporalClassification: "its backward changes what it kept: gradients taken again are others",
    Hinge: "its backward changes what it kept: gradients taken again are others",
    Forget: "calls the function again in backward, as it was asked to",
    TheanoFunction: "runs a compiled function of Theano's",
}


def reason_of(cls: Type) -> str:
    """Why functions of this class have no lowering; empty if no reason is known."""
    if cls.__module__.partition(".")[0] != chainer.__name__:
        return "a function of the user's"
    return OPAQUE_REASONS.get(cls, "")
