"""Sizes with symbols: arithmetic, canonical forms, three-valued equality, broadcasting."""
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dy2static.ir import dims
from dy2static.ir.dims import Dim, equal, evaluate, less
from dy2static.ir.independent_terms import independent, symbols_in
from dy2static.ir.shapes import broadcast_shapes
from dy2static.ir.size_bounds import bounds_of, maximum, minimum

n, m = Dim("n"), Dim("m")


@pytest.mark.parametrize("size, text", [
    (n, "n"), (n + 1, "n + 1"), (1 - n, "-n + 1"), (n - n, "0"), (2 * n + 3 * n, "5 * n"), (n * m, "m * n"),
    ((n + 1) * (n - 1), "n * n - 1"), (n * 0, "0"), ((n * 4 + 3) // 2, "2 * n + 1"), ((n + 5) // 2, "(n + 1) // 2 + 2"),
    ((n * m + m) // (n + 1), "m"), ((n * n - 1) // (n + 1), "n - 1"), ((2 * n + 1) // (n + 1), "(2 * n + 1) // (n + 1)"),
    (maximum(n, m) - Dim("a") // 2, "-(a // 2) + max(m, n)"), (maximum(n, n // 2) - n // 2, "n - n // 2"), (n // m, "n // m"), (3 // (n + 1), "3 // (n + 1)"), (n // 1, "n"), (maximum(n, 0), "n"),
    (maximum(n, n + 2), "n + 2"), (maximum(n, m), "max(m, n)"),
    (maximum(Dim("length_n0_upto64"), 64), "64"), (minimum(Dim("length_n0_upto64"), 70), "length_n0_upto64"),
    (maximum(n, m, 3), "max(m, n, 3)"), (n % 2, "n - 2 * (n // 2)"), (maximum(2, 5), "5"),
], ids=str)
def test_canonical_form(size, text):
    assert str(size) == text


@pytest.mark.parametrize("a, b", [
    (n + n, 2 * n), (n + m, m + n), ((n + 1) * 2, 2 * n + 2), (maximum(n, m), maximum(m, n)), ((2 * n) // 2, n),
    (maximum(n, maximum(m, 3)), maximum(maximum(3, n), m)), ((n + 2) // 2, n // 2 + 1), (n // 2 // 3, n // 6),
    ((n - 1) // 2, (n + 1) // 2 - 1), (-n // 4, -((n + 3) // 4)), (n + -n % 4, (n + 3) // 4 * 4),
], ids=str)
def test_equal_values_have_one_form(a, b):
    assert a == b and hash(a) == hash(b) and equal(a, b) is True


@pytest.mark.parametrize("a, b, answer", [
    (3, 3, True), (3, 4, False), (n, n, True), (n, n + 1, False), (n, m, None), (n, 3, None), (2 * n, 3, False),
    (n + 1, 0, False), (n, 0, None), (n * m + 2, 1, False), (4 * n + 2 * m, 2 * n + 1, False), (n // 2 + 1, 0, False),
    (maximum(n, 3), 2, False), (n + 1, n // 2 * 2, False), (n // 3 * 3 - 3, n, False), (Dim("length_n0_upto64"), 65, False),
], ids=str)
def test_equal(a, b, answer):
    assert equal(a, b) is answer


@pytest.mark.parametrize("a, b, result", [
    ((), (), ()), ((3,), (), (3,)), ((4, 1), (3,), (4, 3)), ((n, 3), (3,), (n, 3)), ((n, 1), (1, m), (n, m)),
    ((n,), (n,), (n,)), ((1,), (n + 1,), (n + 1,)), ((0, 3), (1, 3), (0, 3)), ((2, 0), (1,), (2, 0)),
], ids=str)
def test_broadcast_shapes(a, b, result):
    assert broadcast_shapes(a, b) == result == broadcast_shapes(b, a)


@pytest.mark.parametrize("a, b", [((3,), (4,)), ((2, 3), (3, 2)), ((n,), (n + 1,)), ((n,), (m,)), ((n,), (3,))],
                         ids=str)
def test_shapes_that_do_not_fit(a, b):
    with pytest.raises(ValueError, match="could not be broadcast"):
        broadcast_shapes(a, b)


def test_what_only_the_run_can_tell_is_assumed():
    assumed = []
    assert broadcast_shapes((n, m), (3, m), assume=lambda a, b: assumed.append((a, b))) == (3, m)
    assert assumed == [(n, 3)]


def test_a_size_is_not_a_truth_value():
    with pytest.raises(TypeError, match="not known yet"):
        bool(n)
    with pytest.raises(TypeError):
        n < m  # noqa: B015


EXPRESSIONS = st.recursive(
    st.one_of(st.integers(0, 6), st.sampled_from([n, m])),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]), st.tuples(inner, inner).map(lambda p: p[0] - p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] * p[1]),
        st.tuples(inner, st.integers(1, 4)).map(lambda p: p[0] // p[1]),
        st.tuples(inner, inner).map(lambda p: maximum(*p)), st.tuples(inner, inner).map(lambda p: minimum(*p))),
    max_leaves=8)


@given(EXPRESSIONS, EXPRESSIONS)
def test_arithmetic_agrees_with_numbers(a, b):
    for i, j in itertools.product((0, 1, 3, 6), repeat=2):
        sizes = {"n": i, "m": j}
        x, y = evaluate(a, sizes), evaluate(b, sizes)
        assert evaluate(a + b, sizes) == x + y
        assert evaluate(a - b, sizes) == x - y
        assert evaluate(a * b, sizes) == x * y
        assert evaluate(dims.floordiv(a, 3), sizes) == x // 3
        assert evaluate(maximum(a, b), sizes) == max(x, y)
        assert equal(a, b) in ((None, True) if x == y else (None, False))
        assert eval(str(a), {"max": max}, sizes) == x       # what is printed is what is meant


def test_bounds_of_minima():
    """Each size is bounded by itself, whatever its name: 64 of them take no longer than 64 times one."""
    for name in ("length_n", "made"):
        sizes = [minimum(Dim(f"{name}{i}"), 12) for i in range(64)]
        assert bounds_of(sum(sizes))[1] == 12 * 64
        assert minimum(sizes[0], 30) == sizes[0] and maximum(sizes[0], 30) == 30
        assert less(sizes[0], 13) is True and less(sizes[0], 12) is None


def test_terms_that_depend_on_each_other():
    """Terms that share a symbol, directly or by a third one, stay together."""
    k = Dim("k")
    assert [sorted(symbol for term in group for symbol in symbols_in(term[0])) for group in independent((m + n * k)._terms)] in (
        [["m"], ["k", "n"]], [["k", "n"], ["m"]])
    assert len(independent((m + n + m * n + k)._terms)) == 2
    assert bounds_of(maximum(m, n) - m - 1)[0] == -1
