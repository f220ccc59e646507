"""What is computed with sizes that differ from call to call: the same numbers, of the same types, with the same errors."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static

SIZES = (5, 7, 9, 2, 3, 4, 12)

#: All in one function: a program serves all sizes.
NUMBERS = (
    lambda n: (n << 1, n >> 1, 1 << n, -n << 2, n & 3, n & 6, n & n - 1, 6 & n, n | 4, 7 | n, n ^ 5, ~n, +n, (n - 7) & 3, ~n & 3),
    lambda n: (5 % n, -5 % n, n % n, n % -3, n.real, n.numerator, {0: 1}.get(n % 2), {4: 2, 7: 3}.get(n, 5), n in {4, 7}, n in {0: 1}),
    lambda n: ([1, 2, 3, 4][n % 4], (1, 2, 3, 4)[min(n, 3)], {0: "a", 1: "b"}[n % 2], n // 2 in {1, 2}),
)
#: What is of NumPy's type, since one of the operands is.
OF_NUMPY = (
    lambda n: (n * np.int64(3), np.int64(3) * n, n - np.int32(3), n // np.int64(2), np.int64(20) // n, n % np.int64(3), -(n * np.int64(2))),
    lambda n: (abs(n * np.int32(3)), *divmod(n, n + np.int64(2)), (n + np.int64(1)) ** 2, n * np.int64(2) == n * 2, n + np.int64(1) > 4,
               np.int64(2) * n != 4),
    lambda n: (np.int64(2) * n > 1, int(n * np.int64(3)), max(n * np.int64(2), 5), (n + np.int64(1)) / 2, np.ones(n * np.int64(2)).sum()),
)


def called(function, n):
    x = chainer.Variable(np.arange(n * 2, dtype="f").reshape(n, 2))
    try:
        found = function(x)
    except ZeroDivisionError as error:
        return repr(error)
    F.sum(found[0]).backward()
    return found[1], found[0].array.tolist(), x.grad.tolist()


def test_one_program_computes_with_all_sizes():
    for numbers in NUMBERS:
        def function(x):
            found = numbers(x.shape[0])
            return x * found[0], found

        static = to_static(function, backend="numpy")
        for n in SIZES:
            assert called(static, n) == called(function, n)
        assert static.cache_info().captures == 3


@pytest.mark.parametrize("numbers", OF_NUMPY)
def test_with_integers_of_numpy(numbers):
    """``float32_array * (n * np.int64(3))`` has NumPy's dtype, too."""
    def function(x):
        found = numbers(x.shape[0])
        return x * 2, found, x.array * found[0]

    static = to_static(function, backend="numpy")
    for n in SIZES:
        x = chainer.Variable(np.ones((n, 2), "f"))
        (_, mine, scaled), (_, eager, expected) = static(x), function(x)
        assert mine == eager and list(map(type, mine)) == list(map(type, eager)) and scaled.dtype == expected.dtype
    assert static.cache_info().captures <= 4


#: What sizes are equal to: numbers of all kinds.
EQUAL = (
    lambda n: (n == 4.0, 4.0 == n, n == np.int64(4), np.int32(4) == n, n != np.int8(4), n == np.float32(4), n != 4.5),
    lambda n: (n in [np.int64(4), 3], n == "4", n == None),                                                       # noqa: E711
    lambda n: (n in (4.0, 2), "four" if n == np.int64(4) else "other"),
    lambda n: ((n, 2) == (np.int64(4), 2.0), [n] != [4.0]),
    lambda n: ({4.0: "four", 3.0: "three", "2": "text"}.get(n),),
    lambda n: ({np.int64(4): "four", np.float32(5): "five"}[n] if n in (4, 5) else None,),
    lambda n: (isinstance(n, int), isinstance(n * np.int64(2), int), isinstance(n * np.int64(2), np.integer), type(n - np.int32(1))),
)


@pytest.mark.parametrize("numbers", EQUAL)
def test_a_size_equals_what_its_number_equals(numbers):
    """Python asks the other operand, which would say that it is another object."""
    def function(x):
        return x * 2, numbers(x.shape[0])

    static = to_static(function, backend="numpy")
    for n in SIZES:
        x = chainer.Variable(np.ones((n, 2), "f"))
        mine, eager = static(x)[1], function(x)[1]
        assert mine == eager and list(map(type, mine)) == list(map(type, eager))
    assert static.cache_info().captures <= 4


def test_a_shape_equals_numbers_of_numpy():
    def function(x):
        known = tuple(np.array([4, 3])), (np.int64(4), np.int64(2)), (4, np.int64(3)), (4.0, 2.0)
        return x * 2, [x.shape == shape for shape in known]

    static = to_static(function, backend="numpy")
    for n in SIZES:
        assert called(static, n) == called(function, n)
    assert static.cache_info().captures == 3


def test_floors_by_zero_of_numpy(recwarn):
    def function(x):
        return x * 2, (x.shape[0] + np.int64(1)) // (x.shape[0] - 5)

    static = to_static(function, backend="numpy")
    for n in (7, 8, 9, 5, 4):
        assert called(static, n) == called(function, n)
    assert len([warning for warning in recwarn if "divide by zero" in str(warning.message)]) == 2


def test_remainders_of_zero():
    def function(x):
        n = x.shape[0]
        return x, ((3 - n) % (n - 9), 7 % (n - 12), n % np.int64(1))

    static = to_static(function, backend="numpy")
    for n in (5, 7, 8, 9, 12, 4):
        assert called(static, n) == called(function, n)


def test_grids():
    """Of known sizes they are part of the graph, too, and may be written and differentiated like other arrays."""
    def function(x):
        n = x.shape[0]
        rows, columns = np.mgrid[0:n, :2].astype("f")
        down, across = np.ogrid[:n, 0:2]
        return x * rows + columns * np.mgrid[:2, 0:2].astype("f").sum() + down, (np.mgrid[1:n].sum(), across.shape, np.mgrid[0:1:3j].sum())

    static = to_static(function, backend="numpy", strict=True)
    for n in SIZES:
        assert called(static, n) == called(function, n)
    assert static.cache_info().captures == 3


def test_texts(capsys):
    def function(x):
        n = x.shape[0]
        print(f"{n} rows", x.shape)
        return x * 2, (f"{n:03d} {n // 2!r} {x.shape}", "%d of %s" % (n, x.shape), "{} {}".format(n, x.shape), str(x.shape), str(n))

    static = to_static(function, backend="numpy")
    for n in SIZES:
        assert called(static, n) == called(function, n)
        first, second = capsys.readouterr().out.splitlines()
        assert first == second
    assert static.cache_info().captures == 3


def joined(a, b):
    return np.hstack([a[0], b[:, 0]]) * 2, np.vstack([a, b]) + 1, np.dstack([a, a])


def differences(a, b):
    return np.diff(a, 2, axis=0), np.diff(a, axis=0, prepend=a[:1], append=1), np.diff(b, n=3) * 2, np.diff(b, n=0, append=0)


def looked_up(a, b):
    edges = np.array([0, 0.2, 0.8])
    return np.digitize(a, edges) + 1, np.histogram(b, bins=5)[0] * 2, np.histogram(b.ravel(), bins=edges)[1]


@pytest.mark.parametrize("function", [joined, differences, looked_up])
def test_functions_whose_sizes_follow_a_rule(function):
    """One program for all sizes from some on, also where some are one or none."""
    compiled = to_static(function, strict=True)
    for n, m in ((3, 4), (5, 2), (7, 6), (9, 5), (1, 3), (2, 8), (8, 3)):
        a, b = np.random.RandomState(n).rand(n, 4), np.random.RandomState(m).rand(m, 4)
        for found, wanted in zip(compiled(a, b), function(a, b)):
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_array_equal(found, wanted)
    assert compiled.cache_info().captures <= 4


def halved(x):
    return x if len(x) <= 1 else halved(x[:len(x) // 2]) + 1


def test_a_capture_ends_of_a_function_that_calls_itself_with_half_of_an_array():
    static = to_static(halved)
    for n in (4, 5, 8, 9):
        x = np.ones((n, 2), "f")
        np.testing.assert_array_equal(static(x), halved(x))
