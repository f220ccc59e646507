"""Winograd's algorithm for single convolutions of plain images, and their derivatives, as in training."""
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
import test_native_convolutions as shapes

from dy2static import to_static
from dy2static.native import compiler, convolutions, team

pytestmark = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")

ROWS = [shapes.windows(3, 1, 17, 33, (9, 8), (3, 3), pad=(1, 1)), shapes.windows(5, 1, 32, 16, (6, 7), (3, 3), pad=(2, 0)),
        shapes.windows(1, 1, 40, 70, (15, 3), (3, 3), pad=(0, 2)), shapes.windows(9, 1, 64, 64, (8, 8), (3, 3), pad=(1, 1)),
        shapes.windows(2, 1, 17, 33, (4, 9, 8), (3, 3, 3), pad=(1, 1, 1)), shapes.windows(1, 1, 40, 20, (3, 6, 7), (2, 3, 3), pad=(0, 2, 0)),
        shapes.windows(3, 1, 17, 33, (14, 9), (3, 3), pad=(2, 3), dilate=(2, 3)),
        shapes.windows(2, 1, 20, 16, (13, 12), (3, 3), pad=(6, 0), dilate=(5, 1)),
        shapes.windows(2, 1, 17, 20, (3, 9, 8), (3, 3, 3), pad=(1, 2, 0), dilate=(1, 2, 2)),
        shapes.windows(2, 1, 16, 16, (2, 5, 6), (1, 3, 3)), shapes.windows(1, 1, 24, 70, (3, 4, 4), (5, 3, 3), pad=(4, 1, 1))]


#: Sums of several shares, and of several regions with some of the squares at a time.
SUMMED = [shapes.windows(9, 1, 20, 40, (23, 24), (3, 3), pad=(1, 1)), shapes.windows(5, 1, 272, 208, (15, 14), (3, 3), pad=(1, 1)),
          shapes.windows(3, 1, 20, 40, (5, 23, 12), (3, 3, 3), pad=(1, 1, 1)),
          shapes.windows(9, 1, 20, 40, (23, 24), (3, 3), pad=(2, 2), dilate=(2, 2))]


@pytest.mark.any_python
@pytest.mark.parametrize("call, row", [
    *((call, row) for call in shapes.CALLS for row in ROWS), *(("conv_grad_weight", row) for row in SUMMED)], ids=str)
@pytest.mark.parametrize("number", [1.0, np.inf, np.nan])
def test_values_and_what_is_not_finite(call, row, number):
    """On any number of threads, with the same bits.  Images with numbers that are not finite are computed directly."""
    args, expected = shapes.reference(call, row, np.float32)
    args[0][0, 3, 1, -1] = args[0][-1, -1, 0, 0] = number
    found, threads = [], team.wanted()
    try:
        for algorithm, count in ((0, 1), (convolutions.WINOGRAD, 1), (convolutions.WINOGRAD, 2)):
            team.set_threads(count)
            team.team().handle.insist(1)
            found.append(np.full(expected.shape, 7, np.float32))
            assert convolutions.compute(call, row._replace(algorithm=algorithm), "f32", *args, found[-1]) == 0
    finally:
        team.team().handle.insist(0)
        team.set_threads(threads)
    np.testing.assert_array_equal(found[1], found[2])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("number", [1.0, np.inf])
@pytest.mark.parametrize("axes", [2, 3])
def test_a_training_program(number, axes):
    """What follows a convolution follows each image, and is done once for each."""
    sizes = {2: (6, 64, 12, 12), 3: (6, 32, 3, 12, 8)}[axes]
    link, x = L.ConvolutionND(axes, sizes[1], 64, 3, pad=1), np.random.RandomState(0).standard_normal(sizes).astype("f")
    x[2, 5, 1, 3] = number

    def loss(x):
        h = F.relu(link(x))
        return F.sum(h * h, axis=(0, *range(2, 2 + axes))), h

    def gradients(x):
        link.cleargrads()
        F.sum(loss(x)[0]).backward()

    results = []
    for function in (loss, to_static(loss, backend="c")):
        link.cleargrads()
        sums, h = function(x)
        F.sum(sums).backward()
        results.append((sums.array, h.array, link.W.grad, link.b.grad))
    text = to_static(gradients, backend="c").program(x).native_code
    assert "dy_blocks_winograd(" in text and "dy_blocks_winograd_filters(" in text
    # nothing in blocks of channels is compiled for it
    assert "#define DY_BLOCKS_PLAIN\n" in text and "#define DY_BLOCKS_CONV\n" not in text and "DEPTHWISE" not in text
    for a, b in zip(*results):
        np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-3)
