"""Convolutions, pooling and normalisation in native programs: every variant of Chainer's is C, with eager's values and
gradients; and what follows a convolution, image by image."""
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import config, to_static
from dy2static.backends.c.supported import supported
from dy2static.native import announce, compiler, team

pytestmark = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")


def array(*shape, seed=0):
    return np.random.RandomState(seed + len(shape)).standard_normal(shape).astype("f")


X, W, B = array(2, 4, 9, 8), array(6, 4, 3, 3), array(6)
POOLED = array(2, 3, 9, 8)

#: name: (function, *arrays), of whole numbers where they are indices.
LAYERS = {
    "convolution": (F.convolution_2d, X, W, B),
    "stride and padding": (lambda x, w: F.convolution_2d(x, w, stride=(2, 1), pad=(1, 2)), X, W),
    "cover_all": (lambda x, w: F.convolution_2d(x, w, stride=2, cover_all=True), X, W),
    "dilation": (lambda x, w: F.convolution_2d(x, w, pad=2, dilate=2), X, W),
    "dilated_convolution_2d": (lambda x, w: F.dilated_convolution_2d(x, w, dilate=(1, 2)), X, W),
    "groups": (lambda x, w, b: F.convolution_2d(x, w, b, groups=2), X, array(6, 2, 3, 3), B),
    "a channel each": (lambda x, w: F.depthwise_convolution_2d(x, w, pad=1), X, array(2, 4, 3, 3)),
    "separable": (F.convolution_2d, X, array(5, 4, 1, 1)),
    "one axis": (lambda x, w: F.convolution_1d(x, w, stride=2, pad=1), array(2, 3, 20), array(4, 3, 5)),
    "three axes": (lambda x, w: F.convolution_3d(x, w, pad=1), array(2, 3, 5, 6, 7), array(4, 3, 3, 2, 3)),
    "deconvolution": (lambda x, w, b: F.deconvolution_2d(x, w, b, stride=2, pad=1), X, array(4, 3, 4, 4), array(3)),
    "deconvolution, outsize": (lambda x, w: F.deconvolution_2d(x, w, stride=2, outsize=(20, 17)), X, array(4, 3, 3, 3)),
    "deconvolution, groups": (lambda x, w: F.deconvolution_2d(x, w, groups=2, dilate=2), X, array(4, 2, 3, 3)),
    "deconvolution, one axis": (lambda x, w: F.deconvolution_1d(x, w, stride=3), array(2, 3, 9), array(3, 2, 4)),
    "deconvolution, three axes": (lambda x, w: F.deconvolution_3d(x, w, stride=2), array(2, 3, 3, 4, 3), array(3, 2, 2, 3, 2)),
    "deformable": (lambda x, o, w: F.deformable_convolution_2d_sampler(x, o, w, pad=1), X, array(2, 18, 9, 8), W),
    "max pooling": (lambda x: F.max_pooling_2d(x, 2), POOLED),
    "max pooling, overlapping": (lambda x: F.max_pooling_2d(x, 3, 2, cover_all=False), POOLED),
    "max pooling, cover_all": (lambda x: F.max_pooling_2d(x, 3, 2), POOLED),
    "max pooling, padding": (lambda x: F.max_pooling_2d(x, 3, 2, 1), POOLED),
    "max pooling, one axis": (lambda x: F.max_pooling_1d(x, 3, 2), array(2, 3, 11)),
    "max pooling, three axes": (lambda x: F.max_pooling_3d(x, 2), array(2, 3, 4, 5, 6)),
    "average pooling": (lambda x: F.average_pooling_2d(x, 2), POOLED),
    "average pooling, padding": (lambda x: F.average_pooling_2d(x, 3, 2, 1), POOLED),
    "average pooling, all around": (lambda x: F.average_pooling_2d(x, 3, 1, 1), array(2, 3, 7, 40)),
    "average pooling, long rows": (lambda x: F.average_pooling_2d(x, (2, 5), (3, 2), (1, 4)), array(1, 2, 5, 600)),
    "average pooling, short rows": (lambda x: F.average_pooling_2d(x, (4, 3), (3, 1), (2, 2)), array(2, 2, 6, 2)),
    "average pooling, overlapping, three axes": (lambda x: F.average_pooling_3d(x, 2, 1, 1), array(2, 2, 4, 5, 6)),
    "average pooling, three axes": (lambda x: F.average_pooling_3d(x, 2), array(2, 3, 4, 5, 6)),
    "unpooling": (lambda x: F.unpooling_2d(x, 2), POOLED),
    "unpooling, outsize": (lambda x: F.unpooling_2d(x, 2, outsize=(17, 15)), POOLED),
    "unpooling, three axes": (lambda x: F.unpooling_3d(x, 2), array(2, 3, 3, 3, 3)),
    "upsampling": (lambda x, i: F.upsampling_2d(x, i, 2, outsize=(8, 8)), array(2, 3, 4, 4), np.arange(96).reshape(2, 3, 4, 4) % 4),
    "pyramid": (lambda x: F.spatial_pyramid_pooling_2d(x, 2, "max"), POOLED),
    "batch normalisation": (F.batch_normalization, X, array(4), array(4, seed=1)),
    "fixed batch normalisation": (lambda x, g, b, m, v: F.fixed_batch_normalization(x, g, b, m, F.exp(v)), X, array(4),
                                  array(4, seed=1), array(4, seed=2), array(4, seed=3)),
    "group normalisation": (lambda x, g, b: F.group_normalization(x, 2, g, b), X, array(4), array(4, seed=1)),
    "layer normalisation": (F.layer_normalization, array(5, 7), array(7), array(7, seed=1)),
    "local responses": (F.local_response_normalization, X),
}


def outcome(function, arrays, dtype):
    """The result, and gradients of a loss by all arrays of floats."""
    given = [chainer.Variable(a.astype(dtype)) if a.dtype.kind == "f" else a for a in arrays]
    y = function(*given)
    F.sum(F.sin(y) + y * y * 0.5).backward()
    return [y.array] + [v.grad for v in given if isinstance(v, chainer.Variable)]


def native(function):
    return to_static(function, backend="c")


def is_c(compiled):
    """Whether C computes every node of every program, the largest constants apart."""
    return all(supported(node) or node.op.name == "constant"
               for program in compiled.dispatcher.programs for node in program.graph.walk())


@pytest.mark.parametrize("dtype", ("f", "d"))
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, dtype):
    function, *arrays = LAYERS[name]
    compiled = native(lambda *args: function(*args))
    tolerance = 2e-4 if dtype == "f" else 1e-9
    for mine, eager in zip(outcome(compiled, arrays, dtype), outcome(function, arrays, dtype)):
        np.testing.assert_allclose(mine, eager, rtol=tolerance, atol=tolerance * np.abs(eager).max())
    assert len(compiled.dispatcher.programs) == 1 and is_c(compiled)


SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)


@pytest.mark.parametrize("options", ({"ksize": 2}, {"ksize": 3, "stride": 2, "cover_all": False}, {"ksize": 3, "stride": 2, "pad": 1}),
                         ids=str)
def test_maxima_of_special_values(options):
    """The first NaN, else the first maximum."""
    x = np.random.RandomState(0).choice(SPECIAL + (1.0, 2.0), (3, 4, 9, 21)).astype("f")
    f = native(lambda x: F.max_pooling_2d(x, **options))
    expected = F.max_pooling_2d(x, **options).array
    np.testing.assert_array_equal(f(x).array, expected)


def test_masks_are_stored_as_bytes():
    """Of stores of bool behind a relu, gcc 12 makes no vectors."""
    f, x = native(lambda x: np.maximum(x * 2, 0) > 1), array(3, 5)
    np.testing.assert_array_equal(f(x), x > 0.5)
    assert all("((uint8_t *)" in program.native_code for program in f.dispatcher.programs)


# What follows a convolution -----------------------------------------------------------------------------------------------

X2, W2, B2 = array(3, 4, 8, 8), array(5, 4, 3, 3), array(5)
SQUARE, TURNED, BACK, HALF, OWN = array(5, 5, 3, 3), array(4, 6, 4, 4), array(6, 5, 3, 3), array(6, 2, 3, 3), array(4, 4, 3, 3)


def normalised(x, w, b):
    return F.relu((F.convolution_2d(x, w, pad=1) - 0.5) * F.reshape(b, (1, 5, 1, 1)) + 1)


def pooled(x, w, b):
    return F.max_pooling_2d(F.relu(F.convolution_2d(x, w, b, pad=1)), 2)


def residual(x, w, b):
    h = F.convolution_2d(x, w, b, pad=1)
    return F.relu(F.convolution_2d(F.tanh(h), SQUARE, pad=1) + h)


def read_again(x, w, b):
    """The result of the convolution is read after what was made of it."""
    y = F.convolution_2d(x, w, pad=1)
    return F.exp(y * 0.1) * 2, F.convolution_2d(y, SQUARE)


def read_twice(x, w, b):
    """In one loop, before and after the first result."""
    y = F.convolution_2d(x, w, pad=1)
    h = F.relu(y)
    return h * 2, h + y


def in_rows(x, w, b):
    return F.softmax(F.convolution_2d(x, w, b, pad=1), axis=3) * 2


def turned(x, w, b):
    """Elements go to another place of the same image."""
    y = F.convolution_2d(x, w, pad=1)
    return F.transpose(y, (0, 2, 3, 1)) * 2, F.swapaxes(y, 2, 3) + y


def crossing(x, w, b):
    """Elements of other images are read."""
    y = F.convolution_2d(x, w, pad=1)
    return F.flip(y, 0) + 1, y[1:] * y[:-1]


def summed(x, w, b):
    """Sums over images, and what needs them."""
    y = F.convolution_2d(x, w, pad=1)
    total = F.sum(y * y, axis=(0, 2, 3), keepdims=True)
    return F.relu(y), y / F.broadcast_to(total, y.shape)


def as_many_channels(x, w, b):
    """As there are images: what is made of sums does not go by images."""
    y = F.convolution_2d(x, w[:3], pad=1)
    return y * F.broadcast_to(F.reshape(F.sqrt(F.sum(y * y, axis=(0, 2, 3)) * 0.1), (1, 3, 1, 1)), y.shape)


def summed_apart(x, w, b):
    """Sums within images that are not rows."""
    y = F.convolution_2d(x, w, b, pad=1)
    return F.sum(y * 2, axis=1), F.sum(y, axis=(1, 2))


def deconvolved(x, w, b):
    h = F.tanh(F.deconvolution_2d(x, TURNED, stride=2, pad=1) + 0.1)
    return F.relu(F.deconvolution_2d(h, BACK, b, pad=1))


def grouped(x, w, b):
    return F.leaky_relu(F.convolution_2d(x, HALF, groups=2)) * 2


def in_a_loop(x, w, b):
    while float(F.max(x).array) > 0.1:
        x = F.tanh(F.convolution_2d(x, OWN, pad=1) * 0.02) * 0.9
    return x


FOLLOWED = (normalised, pooled, residual, read_again, read_twice, in_rows, turned, summed, as_many_channels, summed_apart, deconvolved, grouped, in_a_loop)


@pytest.fixture(params=(1, 2))
def threads(request):
    before = config.THREADS.value
    team.set_threads(request.param)
    yield request.param
    team.set_threads(before or team.wanted())
    config.THREADS.value = before


@pytest.mark.parametrize("function", (*FOLLOWED, crossing))
def test_followers(function, threads):
    with chainer.no_backprop_mode():
        compiled = native(lambda x, w, b: function(x, w, b))
        for seed in range(2):
            given = array(*X2.shape, seed=seed), W2, B2
            results, expected = compiled(*given), function(*given)
            for mine, eager in zip(*(r if isinstance(r, tuple) else (r,) for r in (results, expected))):
                np.testing.assert_allclose(mine.array, eager.array, rtol=1e-4, atol=1e-4)
    (program,) = compiled.dispatcher.programs
    assert ("dy_finish" in program.native_code) == (function in FOLLOWED)


def test_without_a_compiler():
    """Patches and NumPy's products take over, which is said once."""
    announce.forget()
    with config.CC.set("no-such-compiler"), warnings.catch_warnings(record=True) as seen, chainer.no_backprop_mode():
        warnings.simplefilter("always")
        for function in (pooled, deconvolved):
            compiled = native(lambda x, w, b: function(x, w, b))
            np.testing.assert_allclose(compiled(X2, W2, B2).array, function(X2, W2, B2).array, rtol=1e-5, atol=1e-5)
            assert compiled.stats()["native"] == 0
    announce.forget()
    assert ["there is no C compiler" in str(w.message) for w in seen] == [True]
