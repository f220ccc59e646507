"""Convolutions for generated code, against those of NumPy that programs use otherwise."""
import functools
import itertools
import os
import threading

import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from dy2static.native import compiler, convolutions, library, team
from dy2static.ops.correlation import convolve_images, convolve_transposed, correlate_with_gradient

pytestmark = [pytest.mark.any_python, pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")]

NAMES = {"f32": (np.float32, 2e-5), "f64": (np.float64, 1e-12)}
CALLS = {"conv": (convolve_images, "x W", "y"), "conv_transpose": (convolve_transposed, "y W", "x"),
         "conv_grad_weight": (correlate_with_gradient, "x y", "W")}

TEXT = """
#include "%s"
#define DY_WINDOWS_%s
#include "%s"
static int run(char **p, int64_t *n, double *d)
{
    return dy_%s_%s((void *)p[0], (void *)p[1], (void *)p[2], (void *)p[3]%s);
}
%s
"""


def native(call, name, windows, declined=lambda *args: pytest.fail("declined")):
    """A function of NumPy arrays.  declined: what is called where the kernel gives no result.

    The windows are an argument of its text, which is compiled once for all of them, and once for depthwise ones.
    """
    name = windows.library(name)
    text = TEXT % (library.HEADER, name.upper(), convolutions.HEADER, call, name,
                   "" if call == "conv_grad_weight" else ", 0", library.wrapper("f", ("array", "array", "array"), ("array",)))
    function = library.bind(compiler.build(text), "f", lambda _, *args: declined(*args))
    return functools.partial(function, np.hstack(windows.members()))


def spots(image, kernel, stride, pad, dilate, extra=0):
    return tuple((n + 2 * p - (k - 1) * d - 1 + extra * (s - 1)) // s + 1
                 for n, k, s, p, d in zip(image, kernel, stride, pad, dilate))


def windows(batch, groups, in_, out, image, kernel, stride=None, pad=None, dilate=None, extra=0):
    count = len(image)
    stride, pad, dilate = stride or (1,) * count, pad or (0,) * count, dilate or (1,) * count
    return convolutions.Windows(batch, groups, in_, out, image, kernel, spots(image, kernel, stride, pad, dilate, extra),
                                stride, pad, dilate)


ROWS = {
    "3x3": windows(2, 1, 3, 5, (6, 7), (3, 3)),
    "padded": windows(2, 1, 3, 5, (6, 7), (3, 3), pad=(1, 1)),
    "more padding than filter": windows(1, 1, 2, 3, (4, 5), (2, 3), pad=(3, 4)),
    "strided": windows(2, 1, 3, 4, (9, 8), (3, 3), stride=(2, 2), pad=(1, 1)),
    "stride and padding differ": windows(1, 1, 2, 13, (9, 11), (4, 2), stride=(3, 2), pad=(2, 0)),
    "stride above filter": windows(1, 1, 2, 3, (9, 8), (2, 1), stride=(3, 4)),
    "dilated": windows(1, 1, 3, 4, (9, 11), (3, 3), pad=(2, 1), dilate=(2, 3)),
    "strided and dilated": windows(1, 1, 3, 4, (12, 11), (3, 2), stride=(2, 3), pad=(2, 1), dilate=(3, 2)),
    "windows beyond the padding": windows(2, 1, 3, 4, (8, 9), (3, 2), stride=(3, 2), pad=(1, 0), extra=1),
    "1x1": windows(3, 1, 4, 6, (5, 5), (1, 1)),
    "1x1, whole vectors": windows(3, 2, 20, 24, (8, 4), (1, 1)),
    "1x1, whole vectors, few filters": windows(3, 1, 5, 2, (4, 16), (1, 1)),
    "every second, rows of many": windows(2, 1, 3, 4, (9, 70), (3, 3), stride=(1, 2), pad=(1, 1)),
    "few rows of many taps": windows(2, 3, 20, 2, (9, 11), (3, 3), pad=(1, 1)),
    "a channel each, large": windows(1, 2, 1, 2, (20, 21), (3, 3), pad=(1, 1)),
    "steps of two and three": windows(2, 2, 5, 6, (13, 14), (4, 5), stride=(3, 2), pad=(2, 2)),
    "1x1 strided": windows(3, 1, 4, 6, (5, 5), (1, 1), stride=(2, 2)),
    "groups": windows(2, 3, 2, 4, (6, 5), (3, 3), pad=(1, 1)),
    "a channel each": windows(2, 5, 1, 1, (6, 5), (3, 3), stride=(2, 1), pad=(1, 1)),
    "a channel each, wide rows": windows(2, 3, 1, 1, (9, 48), (3, 3), pad=(1, 1)),
    "a channel each, rows of many filters": windows(1, 3, 1, 2, (7, 30), (5, 5), pad=(2, 2)),
    "a channel each, seven rows": windows(2, 2, 1, 1, (10, 14), (7, 7), pad=(3, 3)),
    "a channel each, rows that grow": windows(2, 3, 1, 2, (4, 5), (3, 3), pad=(3, 4)),
    "a channel each, rows that shrink": windows(1, 2, 1, 1, (6, 20), (3, 4)),
    "a channel each, tiny": windows(3, 40, 1, 1, (3, 3), (3, 3), pad=(1, 1)),
    "a channel each, every second": windows(2, 4, 1, 1, (7, 38), (3, 3), stride=(2, 2), pad=(1, 1)),
    "a channel each, every second of odd rows": windows(2, 3, 1, 2, (9, 13), (5, 5), stride=(2, 2), pad=(2, 2)),
    "a channel each, every third": windows(2, 3, 1, 1, (11, 17), (3, 2), stride=(2, 3), pad=(1, 0), extra=1),
    "a channel each, stride above filter": windows(1, 3, 1, 2, (9, 8), (2, 1), stride=(3, 4)),
    "a channel each, dilated": windows(2, 3, 1, 1, (9, 20), (3, 3), stride=(2, 1), pad=(2, 4), dilate=(2, 4)),
    "a channel each, one axis": windows(2, 5, 1, 2, (70,), (9,), stride=(2,), pad=(4,)),
    "added": windows(5, 1, 3, 20, (8, 8), (4, 4), stride=(2, 2), pad=(1, 1)),
    "added, odd rows": windows(3, 1, 5, 17, (11, 13), (3, 3), stride=(2, 2), pad=(1, 1)),
    "added, no padding": windows(2, 2, 7, 16, (9, 14), (3, 5), stride=(2, 2)),
    "added, windows beyond the padding": windows(2, 2, 3, 16, (12, 11), (4, 4), stride=(3, 2), pad=(0, 3), extra=1),
    "added, steps of one and three": windows(2, 1, 4, 18, (9, 20), (3, 5), stride=(1, 3), pad=(2, 1)),
    "added, steps of two and one": windows(2, 1, 4, 18, (9, 20), (2, 1), stride=(2, 1)),
    "added, more padding than filter": windows(2, 1, 3, 16, (6, 9), (3, 3), stride=(2, 3), pad=(4, 5)),
    "added, side by side": windows(3, 1, 30, 32, (16, 16), (2, 2), stride=(2, 2)),
    "added, one axis": windows(3, 2, 5, 16, (31,), (4,), stride=(2,), pad=(1,)),
    "added, deep": windows(5, 1, 14, 400, (8, 8), (4, 4), stride=(2, 2), pad=(1, 1)),
    "added, many places": windows(2, 1, 4, 20, (46, 42), (4, 4), stride=(2, 2), pad=(1, 1)),
    "added, no batch": windows(0, 1, 4, 20, (46, 42), (4, 4), stride=(2, 2), pad=(1, 1)),
    "added, some channels at a time": windows(1, 1, 5, 16, (124, 126), (4, 4), stride=(2, 2), pad=(1, 1)),
    "added, steps of five": windows(3, 1, 2, 17, (9, 33), (3, 6), stride=(1, 5), pad=(1, 2)),
    "added, few windows": windows(9, 1, 3, 8, (8, 8), (5, 5)),
    "as wide as the image": windows(3, 2, 2, 9, (12, 7), (3, 7), stride=(2, 1), pad=(1, 0), extra=1),
    "as wide as the image, many taps": windows(2, 1, 1, 20, (9, 60), (4, 60)),
    "as wide as the image, three axes": windows(2, 1, 2, 17, (7, 4, 5), (2, 4, 5), stride=(2, 1, 1)),
    "one column": windows(3, 1, 3, 5, (20, 1), (4, 1), pad=(1, 0), dilate=(2, 1)),
    "one window": windows(2, 1, 3, 4, (3, 4), (3, 4)),
    "one axis": windows(2, 1, 3, 4, (20,), (5,), stride=(2,), pad=(2,)),
    "one axis, three taps meet three places": windows(2, 2, 8, 4, (1,), (5,), stride=(2,), pad=(2,)),
    "one axis, three of five places": windows(2, 1, 17, 8, (3,), (5,), stride=(2,), pad=(2,)),
    "three axes": windows(2, 1, 2, 3, (5, 4, 6), (3, 2, 3), stride=(2, 1, 2), pad=(1, 0, 1), dilate=(1, 2, 1)),
    "deep": windows(1, 1, 50, 30, (5, 5), (3, 3), pad=(1, 1)),
    "many filters": windows(1, 1, 3, 200, (5, 5), (3, 3), pad=(1, 1)),
    "few windows, many filters": windows(7, 1, 6, 70, (2, 3), (3, 3), pad=(1, 1)),
    "few windows, strided": windows(5, 2, 40, 50, (5, 5), (3, 3), stride=(2, 2), pad=(1, 1)),
    "few windows, deep": windows(40, 1, 80, 60, (3, 3), (3, 3), pad=(1, 1)),
    "1x1 of three axes": windows(2, 2, 3, 4, (3, 4, 5), (1, 1, 1)),
    "rows that fill tiles": windows(2, 2, 45, 13, (3, 64), (3, 3), pad=(1, 1)),
    "rows that fill tiles, strided": windows(1, 1, 3, 4, (5, 64), (3, 3), stride=(1, 2), pad=(1, 1)),
    "groups of few filters": windows(2, 4, 3, 8, (17, 23), (3, 3), stride=(2, 1), pad=(1, 1)),
    "few filters": windows(3, 1, 30, 6, (30, 14), (3, 3), pad=(1, 1)),
    "sixteen filters": windows(2, 2, 3, 16, (25, 21), (5, 5), stride=(1, 1), pad=(2, 2)),
    "large": windows(1, 1, 2, 3, (30, 45), (3, 3), pad=(1, 1)),
    "patches": windows(5, 1, 3, 20, (16, 12), (4, 4), stride=(4, 4)),
    "patches, deep": windows(2, 1, 3, 30, (32, 48), (16, 16), stride=(16, 16)),
    "patches, some taps alone": windows(2, 1, 3, 30, (14, 35), (7, 7), stride=(7, 7)),
    "patches of groups, with gaps": windows(2, 2, 3, 7, (13, 23), (3, 5), stride=(2, 6), dilate=(2, 1)),
    "patches beyond the image": windows(2, 1, 3, 7, (9, 14), (4, 4), stride=(4, 4), extra=1),
    "patches, one axis": windows(3, 1, 4, 9, (50,), (7,), stride=(9,)),
    "patches, three axes": windows(2, 1, 2, 3, (5, 4, 17), (2, 2, 4), stride=(2, 2, 5)),
    "one patch": windows(1, 1, 2, 3, (5, 6), (5, 6), stride=(5, 6)),
    "a channel each, most taps": windows(1, 2, 1, 1, (3, 66), (2, 64)),
    "a channel each, most remainders": windows(1, 2, 1, 2, (9, 9), (3, 3), stride=(4, 4)),
    "a channel each, one too many": windows(1, 2, 1, 1, (2, 66), (1, 65)),
    "no batch, many windows": windows(0, 1, 3, 40, (60000, 4), (3, 3), pad=(1, 1)),
    "no batch": windows(0, 1, 2, 3, (4, 4), (3, 3)),
}


def arrays(row, dtype):
    """x, W and y of a row, with values in no order."""
    random = np.random.RandomState(0)
    shapes = {"x": (row.batch, row.groups * row.in_, *row.image), "W": (row.groups * row.out, row.in_, *row.kernel),
              "y": (row.batch, row.groups * row.out, *row.spots)}
    return {name: random.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


def reference(call, row, dtype):
    """The operands of a call, and what NumPy makes of them."""
    function, takes, gives = CALLS[call]
    made = arrays(row, dtype)
    size = {"y": row.spots, "x": row.image, "W": row.kernel}[gives]
    args = [made[taken] for taken in takes.split()]
    return args, function(*(arg.astype(np.float64) for arg in args), row.stride, row.pad, row.dilate, row.groups, size)


def compare(call, name, row):
    dtype, tolerance = NAMES[name]
    args, expected = reference(call, row, dtype)
    got = np.full(expected.shape, np.nan, dtype)
    native(call, name, row)(*args, got)
    np.testing.assert_allclose(got, expected, rtol=tolerance * 10, atol=tolerance * 10)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("row", ROWS)
def test_convolutions(call, row):
    compare(call, "f32", ROWS[row])


def test_depthwise_filters_have_a_library_of_their_own():
    """No other program compiles it; up to what sizes it is for is known before."""
    assert [ROWS[f"a channel each, {which}"].is_depthwise() for which in ("most taps", "most remainders", "one too many")] == [
        True, True, False]
    random = np.random.RandomState(0)
    x, W = random.standard_normal((1, 2, 5, 6)), random.standard_normal((1, 2, 3, 3))
    compiled = to_static(F.depthwise_convolution_2d, backend="c", strict=True)
    np.testing.assert_allclose(compiled(x, W).array, F.depthwise_convolution_2d(x, W).array)
    text = compiled.program(x, W).native_code
    assert "#define DY_WINDOWS_DEPTHWISE_F64\n" in text and "#define DY_WINDOWS_F64\n" not in text


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("row", ["strided and dilated", "a channel each, wide rows", "a channel each, every second of odd rows",
                                 "added, deep", "added, odd rows", "added, many places", "patches, some taps alone"])
def test_in_double_precision(call, row):
    compare(call, "f64", ROWS[row])


@pytest.mark.parametrize("call, seed", list(itertools.product(CALLS, range(5))))
def test_random_convolutions(call, seed):
    random = np.random.RandomState(seed)
    count = random.randint(1, 4)
    kernel, stride, dilate = (tuple(int(n) for n in random.randint(1, 4, count)) for _ in range(3))
    pad = tuple(int(n) for n in random.randint(0, 3, count))
    image = tuple((k - 1) * d + int(n) for k, d, n in zip(kernel, dilate, random.randint(1, 6, count)))
    batch, groups, in_, out = (int(n) for n in random.randint(1, 4, 4))
    compare(call, "f32", windows(batch, groups, in_, out, image, kernel, stride, pad, dilate, extra=int(seed % 2)))


@pytest.mark.parametrize("call, seed", list(itertools.product(CALLS, range(5))))
def test_random_convolutions_of_a_channel_each(call, seed):
    random = np.random.RandomState(seed)
    kernel, stride, dilate, pad = (tuple(int(n) for n in random.randint(least, most, 2))
                                   for least, most in ((1, 6), (1, 4), (1, 3), (0, 5)))
    image = tuple((k - 1) * d + int(n) for k, d, n in zip(kernel, dilate, random.randint(1, 25, 2)))
    batch, groups, out = (int(n) for n in random.randint(1, 4, 3))
    compare(call, "f32", windows(batch, groups + 1, 1, out, image, kernel, stride, pad, dilate, extra=int(seed % 2)))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("row", ["a channel each", "a channel each, wide rows", "a channel each, rows that shrink",
                                 "a channel each, tiny", "a channel each, every second of odd rows", "a channel each, rows that grow",
                                 "strided", "groups", "few filters", "stride and padding differ", "added", "added, odd rows"])
def test_only_neighbours_become_nan(call, row):
    made, row = arrays(ROWS[row], np.float32), ROWS[row]
    function, takes, gives = CALLS[call]
    args = [made[taken] for taken in takes.split()]
    args[0][0, 0, 2, -1] = args[0][-1, 1, -1, 0] = np.nan
    size = {"y": row.spots, "x": row.image, "W": row.kernel}[gives]
    expected = function(*args, row.stride, row.pad, row.dilate, row.groups, size)
    got = np.zeros_like(expected)
    native(call, "f32", row)(*args, got)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("row", ["3x3", "padded", "1x1", "groups", "dilated", "strided", "added", "a channel each", "a channel each, wide rows"])
def test_transposed_filters_that_are_not_finite(row, number):
    """Their products with the zeros around y are NaN, and no part of the sum: NumPy then computes the result, as the kernel declines."""
    made, row = arrays(ROWS[row], np.float32), ROWS[row]
    made["W"][0, 0, 0, -1] = number
    expected = convolve_transposed(made["y"], made["W"], row.stride, row.pad, row.dilate, row.groups, row.image)
    got = np.zeros_like(expected)
    native("conv_transpose", "f32", row, lambda y, W, x: np.copyto(x, expected))(made["y"], made["W"], got)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))


@pytest.mark.parametrize("row", ["padded", "a channel each, every second"])
def test_threads_have_memory_of_their_own(row):
    row = ROWS[row]
    made, f = arrays(row, np.float32), native("conv", "f32", row)
    expected = np.empty_like(made["y"])
    f(made["x"], made["W"], expected)
    results = [np.empty_like(expected) for _ in range(4)]
    threads = [threading.Thread(target=f, args=(made["x"], made["W"], result)) for result in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((result == expected).all() for result in results)


def test_a_child_process_convolves():
    f, made = native("conv", "f32", ROWS["padded"]), arrays(ROWS["padded"], np.float32)
    first, second = np.empty_like(made["y"]), np.empty_like(made["y"])
    f(made["x"], made["W"], first)
    child = os.fork()
    if not child:
        f(made["x"], made["W"], second)
        os._exit(int(not (first == second).all()))
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("row", ["a channel each, large", "a channel each, rows that shrink"])
def test_one_small_image_on_two_threads(call, row):
    before = team.wanted()
    team.set_threads(2)
    try:
        compare(call, "f32", ROWS[row])
    finally:
        team.set_threads(before)
