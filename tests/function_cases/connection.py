"""Calls of chainer.functions.connection."""
import chainer.functions as F
from lowering_cases.case import Case

_CONVOLUTIONS = {
    1: (F.convolution_1d, F.deconvolution_1d, (5,), (2,)),
    2: (F.convolution_2d, F.deconvolution_2d, (5, 4), (3, 2)),
    3: (F.convolution_3d, F.deconvolution_3d, (4, 4, 5), (2, 2, 1)),
}
_OPTIONS = ({}, {"stride": 2, "pad": 1}, {"dilate": 2, "pad": 2}, {"groups": 2})


def _convolutions():
    for n, (convolution, deconvolution, size, kernel) in _CONVOLUTIONS.items():
        for options in _OPTIONS:
            groups = options.get("groups", 1)
            yield Case(f"convolution_{n}d {options}", lambda x, W, b, f=convolution, options=options: f(x, W, b, **options),
                       (2, 4, *size), (6, 4 // groups, *kernel), (6,))
            yield Case(f"deconvolution_{n}d {options}", lambda x, W, b, f=deconvolution, options=options: f(x, W, b, **options),
                       (2, 4, *size), (4, 6 // groups, *kernel), (6,))


CASES = [
    *_convolutions(),
    Case("convolution_2d no bias", F.convolution_2d, (2, 3, 4, 4), (2, 3, 3, 3)),
    Case("convolution_2d covers all", lambda x, W: F.convolution_2d(x, W, stride=2, cover_all=True), (1, 1, 4, 4), (1, 1, 3, 3)),
    Case("convolution_2d two steps", lambda x, W: F.convolution_2d(x, W, stride=(1, 2), pad=(0, 1)), (1, 2, 4, 4), (2, 2, 2, 3)),
    Case("convolution_2d one by one", F.convolution_2d, (2, 3, 2, 2), (4, 3, 1, 1), (4,)),
    Case("convolution_2d of no image", F.convolution_2d, (0, 3, 4, 4), (2, 3, 3, 3)),
    Case("convolution_2d of two dtypes", lambda x, W: F.convolution_2d(x, F.cast(W, "f")), (2, 3, 4, 4), (2, 3, 3, 3), dtypes="f"),
    Case("convolution_nd", lambda x, W, b: F.convolution_nd(x, W, b, stride=(1, 2), pad=1), (2, 3, 4, 4), (2, 3, 3, 2), (2,)),
    Case("convolution_nd covers all", lambda x, W: F.convolution_nd(x, W, stride=2, cover_all=True), (1, 2, 4), (2, 2, 3)),
    Case("deconvolution_2d sized", lambda x, W: F.deconvolution_2d(x, W, stride=2, outsize=(6, 8)), (1, 2, 2, 3), (2, 1, 3, 3)),
    Case("deconvolution_nd", lambda x, W, b: F.deconvolution_nd(x, W, b, stride=2, outsize=(5, 6)), (1, 2, 2, 2), (2, 3, 3, 3), (3,)),
    Case("dilated_convolution_2d", lambda x, W, b: F.dilated_convolution_2d(x, W, b, dilate=2), (2, 3, 5, 5), (2, 3, 2, 2), (2,)),
    Case("depthwise_convolution_2d", lambda x, W, b: F.depthwise_convolution_2d(x, W, b, stride=2, pad=1), (2, 3, 4, 4),
         (2, 3, 2, 2), (6,)),
    Case("local_convolution_2d", F.local_convolution_2d, (2, 2, 4, 4), (3, 3, 3, 2, 2, 2), (3, 3, 3)),
    Case("local_convolution_2d stride", lambda x, W: F.local_convolution_2d(x, W, stride=2), (2, 2, 4, 4), (3, 2, 2, 2, 2, 2)),
    Case("deformable_convolution_2d_sampler", lambda x, offset, W, b: F.deformable_convolution_2d_sampler(x, offset, W, b, pad=1),
         (1, 2, 3, 4), (1, 8, 4, 5), (3, 2, 2, 2), (3,), low=-0.9, high=0.9, dtypes="f d"),
    Case("bilinear", F.bilinear, (3, 2), (3, 4), (2, 4, 5)),
    Case("bilinear with all", F.bilinear, (3, 2), (3, 4), (2, 4, 5), (2, 5), (4, 5), (5,)),
    Case("shift", lambda x: F.shift(x), (2, 9, 4, 3)),
    Case("shift far", lambda x: F.shift(x, 3, 2), (1, 10, 4, 3)),
]
