"""Why classes of Chainer's have no lowering: one line each.  ``docs/op_coverage.md`` prints them."""
from __future__ import annotations

from typing import Dict, Type

import chainer
from chainer.functions.array.as_strided import AsStrided
from chainer.functions.loss.ctc import ConnectionistTemporalClassification
from chainer.functions.loss.hinge import Hinge
from chainer.functions.math.sparse_matmul import CooMatMul
from chainer.functions.normalization.decorrelated_batch_normalization import (
    DecorrelatedBatchNormalization,
    FixedDecorrelatedBatchNormalization,
)
from chainer.functions.pooling.roi_average_align_2d import ROIAverageAlign2D
from chainer.functions.pooling.roi_average_pooling_2d import ROIAveragePooling2D
from chainer.functions.pooling.roi_max_align_2d import ROIMaxAlign2D
from chainer.functions.pooling.roi_max_pooling_2d import ROIMaxPooling2D
from chainer.functions.pooling.roi_pooling_2d import ROIPooling2D
from chainer.functions.theano.theano_function import TheanoFunction
from chainer.functions.util.forget import Forget
from chainer.links.loss.hierarchical_softmax import BinaryHierarchicalSoftmaxFunction

_REGIONS = "loops over regions of interest, whose bounds are contents of an array"

#: What stays whole, and why.  A class that is lowered is not in it.
OPAQUE_REASONS: Dict[Type, str] = {
    AsStrided: "reads the memory around the array, however that lies",
    CooMatMul: "a product of sparse matrices, which SciPy computes",
    **dict.fromkeys((ROIAverageAlign2D, ROIAveragePooling2D, ROIMaxAlign2D, ROIMaxPooling2D, ROIPooling2D), _REGIONS),
    ConnectionistTemporalClassification: "a recursion over label paths of lengths that contents of arrays decide",
    **dict.fromkeys((DecorrelatedBatchNormalization, FixedDecorrelatedBatchNormalization),
                    "whitens with the eigenvectors that LAPACK finds"),
    Hinge: "its backward changes the gradient that it is given, and what it kept",
    BinaryHierarchicalSoftmaxFunction: "walks the path of each label through a tree, in Python",
    Forget: "calls the function again in backward, as it was asked to",
    TheanoFunction: "runs a compiled function of Theano's",
}


def reason_of(cls: Type) -> str:
    """Why functions of this class stay whole; empty if nobody wrote it down."""
    if cls.__module__.partition(".")[0] != chainer.__name__:
        return "a function of the user's"
    return OPAQUE_REASONS.get(cls, "")
