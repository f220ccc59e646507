"""Calls of chainer.functions.connection."""
import chainer.functions as F
import numpy as np

from .case import IDS, LABELS, Case

FILTERS = np.random.RandomState(0).uniform(-1, 1, (3, 2, 2, 2)).astype("f")


def images(name, function, *shapes, **options):
    """Products over patches: summed in another order than Chainer does, in half precision more exactly."""
    low = options.pop("low", -0.7)
    return [Case(name, function, *shapes, low=low, high=-low, exact=False, **options)]


def of(function, **options):
    return lambda *xs: function(*xs, **options)


CASES = [
    Case("linear", F.linear, (4, 3), (2, 3), (2,)),
    Case("linear no bias", F.linear, (4, 3), (2, 3)),
    Case("linear empty", F.linear, (0, 3), (2, 3), (2,)),
    Case("linear one", F.linear, (1, 1), (1, 1), (1,)),
    Case("embed_id", lambda W: F.embed_id(IDS, W), (3, 2)),
    Case("embed_id ignore", lambda W: F.embed_id(IDS, W, ignore_label=2), (3, 2)),
    Case("embed_id ignore negative", lambda W: F.embed_id(LABELS, W, ignore_label=-1), (3, 2)),
    *images("convolution_2d", of(F.convolution_2d, pad=1), (2, 3, 5, 4), (4, 3, 3, 3), (4,)),
    *images("convolution_2d no bias", F.convolution_2d, (2, 3, 5, 4), (4, 3, 3, 2)),
    *images("convolution_2d stride", of(F.convolution_2d, stride=(2, 3), pad=(1, 0)), (2, 1, 6, 7), (2, 1, 3, 2), (2,)),
    *images("convolution_2d cover_all", of(F.convolution_2d, stride=2, cover_all=True), (2, 2, 6, 5), (3, 2, 3, 3), (3,)),
    *images("convolution_2d dilate", of(F.convolution_2d, pad=1, dilate=(2, 1)), (1, 2, 7, 4), (2, 2, 3, 3), (2,)),
    *images("convolution_2d groups", of(F.convolution_2d, groups=2, pad=1), (2, 4, 4, 4), (6, 2, 3, 3), (6,)),
    *images("convolution_2d pointwise", F.convolution_2d, (2, 3, 16, 17), (2, 3, 1, 1), (2,), dtypes="f d"),
    *images("convolution_2d of nobody", F.convolution_2d, (0, 2, 4, 4), (3, 2, 3, 3), (3,)),
    *images("convolution_2d of two dtypes", lambda x, b: F.convolution_2d(x, FILTERS, b), (2, 2, 4, 4), (3,)),
    *images("dilated_convolution_2d", of(F.dilated_convolution_2d, dilate=2), (1, 2, 6, 6), (2, 2, 3, 2), (2,)),
    *images("depthwise_convolution_2d", F.depthwise_convolution_2d, (2, 3, 4, 4), (2, 3, 3, 3), (6,)),
    *images("convolution_1d", of(F.convolution_1d, stride=2, pad=1), (2, 3, 6), (4, 3, 3), (4,)),
    *images("convolution_nd cover_all", of(F.convolution_nd, stride=2, cover_all=True, dilate=(1, 2)), (2, 2, 6, 7), (3, 2, 3, 2)),
    *images("convolution_3d groups", of(F.convolution_3d, groups=2, pad=(1, 0, 1)), (2, 4, 3, 4, 2), (4, 2, 2, 3, 2), (4,)),
    *images("deconvolution_2d", of(F.deconvolution_2d, stride=2, pad=1), (2, 3, 3, 4), (3, 2, 4, 3), (2,)),
    *images("deconvolution_2d outsize", of(F.deconvolution_2d, stride=2, outsize=(8, 8)), (2, 2, 4, 4), (2, 3, 3, 3)),
    *images("deconvolution_2d groups", of(F.deconvolution_2d, groups=2, dilate=(1, 2)), (2, 4, 3, 3), (4, 2, 2, 2), (4,)),
    *images("deconvolution_2d apart", of(F.deconvolution_2d, stride=2), (2, 2, 3, 4), (2, 3, 2, 2), (3,)),
    *images("deconvolution_nd", of(F.deconvolution_1d, stride=2, outsize=(7,)), (2, 3, 3), (3, 2, 2), (2,)),
    *images("deconvolution_nd groups", of(F.deconvolution_nd, groups=2), (1, 4, 2, 2, 3), (4, 1, 2, 1, 2), (2,)),
    *images("local_convolution_2d", of(F.local_convolution_2d, stride=(1, 2)), (2, 3, 4, 5), (2, 3, 2, 3, 2, 3), (2, 3, 2)),
    *images("local_convolution_2d no bias", F.local_convolution_2d, (2, 2, 3, 3), (2, 2, 2, 2, 2, 2)),
    *images("bilinear", F.bilinear, (3, 2), (3, 4), (2, 4, 5), (2, 5), (4, 5), (5,), dtypes="f"),
    *images("bilinear no linear", F.bilinear, (3, 2, 2), (3, 1), (4, 1, 2), dtypes="f"),
    Case("shift", F.shift, (2, 11, 4, 3)),
    Case("shift dilate", of(F.shift, ksize=(1, 3), dilate=(1, 2)), (1, 3, 2, 5)),
]

DECLINED = [
    Case("deconvolution_2d of one covered axis",
         lambda x: F.deconvolution_2d(x, np.ones((1, 1, 3, 3), "f"), stride=2, outsize=(6, 4)), (1, 1, 2, 2)),
    Case("linear of two dtypes", lambda x: F.linear(x, np.ones((2, 3))), (4, 3)),
]
