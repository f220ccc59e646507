"""Why some classes of Chainer have no lowering: one line each.  ``docs/op_coverage.md`` prints them."""
from __future__ import annotations

from typing import Dict, Type

import chainer
from chainer.functions.array.as_strided import AsStrided
from chainer.functions.loss.ctc import ConnectionistTemporalClassification
from chainer.functions.loss.hinge import Hinge
from chainer.functions.theano.theano_function import TheanoFunction
from chainer.functions.util.forget import Forget

#: The reason why each class stays whole.  Classes with a lowering are not listed.
OPAQUE_REASONS: Dict[Type, str] = {
    AsStrided: "reads memory outside the array, so its result depends on the memory layout",
    ConnectionistTemporalClassification: "its backward changes values that it has saved, so a second backward differs",
    Hinge: "its backward changes values that it has saved, so a second backward differs",
    Forget: "calls the function again in backward, which is its purpose",
    TheanoFunction: "runs a compiled function of Theano",
}


def reason_of(cls: Type) -> str:
    """Why functions of this class have no lowering; empty if no reason is known."""
    if cls.__module__.partition(".")[0] != chainer.__name__:
        return "a user-defined function"
    return OPAQUE_REASONS.get(cls, "")
