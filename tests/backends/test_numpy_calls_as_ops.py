"""NumPy calls whose rules make them ops, for native code and for exports: the same as NumPy gives, for any number of rows."""
import warnings

import numpy as np
import pytest

from dy2static import InputSpec
from dy2static.export.captured import exported
from dy2static.ir.interpret import interpret

SPECIAL = np.array([[0.0, -0.0, np.nan, np.inf, -np.inf], [0.5, 1.5, -0.5, 2.5, -1e30], [1, 2, 2, -3, 0.25]])

ELEMENTS = {
    "floor": lambda x, i: np.floor(x), "ceil": lambda x, i: np.ceil(x), "trunc": lambda x, i: np.trunc(x), "rint": lambda x, i: np.rint(x),
    "round": lambda x, i: np.round(x), "decimals": lambda x, i: (np.round(x, 1), x.round(-1)), "sign": lambda x, i: np.sign(x), "fabs": lambda x, i: np.fabs(x), "negative ints": lambda x, i: -i % 3,
    "log1p": lambda x, i: np.log1p(np.abs(x)), "expm1": lambda x, i: np.expm1(x), "exp2": lambda x, i: np.exp2(x), "log2": lambda x, i: np.log2(np.abs(x)),
    "cbrt": lambda x, i: np.cbrt(x), "hypot": lambda x, i: np.hypot(x, x[:1]), "tan": lambda x, i: np.tan(np.clip(x, -1, 1)),
    "arcsin": lambda x, i: np.arcsin(np.clip(x, -1, 1)), "arctan2": lambda x, i: np.arctan2(x, x[:1]), "sinh": lambda x, i: np.sinh(x),
    "logaddexp": lambda x, i: np.logaddexp(x, x[:1]), "remainder": lambda x, i: x % 0.75, "floor_divide": lambda x, i: x // 0.5, "fmod": lambda x, i: np.fmod(x, 2),
    "heaviside": lambda x, i: np.heaviside(x, 0.5), "reciprocal": lambda x, i: np.reciprocal(x), "degrees": lambda x, i: np.degrees(x), "sinc": lambda x, i: np.sinc(x),
    "isnan": lambda x, i: np.isnan(x), "isfinite": lambda x, i: np.isfinite(x), "isinf": lambda x, i: np.isinf(x),
    "nan_to_num": lambda x, i: (np.nan_to_num(x), np.nan_to_num(x, nan=1, posinf=2, neginf=3)),
    "logical": lambda x, i: (np.logical_not(x), np.logical_and(x, x > 1), np.logical_or(i[:, None], x), np.logical_xor(x > 0, x > 1)),
    "bits": lambda x, i: ((x > 0) ^ (x > 1), np.invert(x > 0), np.bitwise_or(x > 0, x < -1)),
    "bits of ints": lambda x, i: (i & 1, i | np.int64(6), i ^ i[:1], ~i, i << 3, i >> i % 3, np.left_shift(i, 70), np.right_shift(-i, 70), np.bitwise_and(i, -2), (x > 0) & i[:, None]),
    "unsigned": lambda x, i: (i.astype("u1") % 3, i.astype("u4") // np.uint32(2), i.astype("u1") << 7, ~i.astype("u2"), -i.astype("u1"), abs(i.astype("u4")), i.astype("u1") > i.astype("u2") - 3),
    "True and False": lambda x, i: ((x > 0) == True, (x > 1) != False, i == True, x == False, (x > 0) == (x > 1), x == (x > 0)),  # noqa: E712
    "ints and floats": lambda x, i: (i[:, None] > x, x <= i.astype("u1")[:, None]),
    "mixed dtypes": lambda x, i: (x + i[:, None], np.maximum(i, 2), x * np.float64(3), i[:, None] > x.astype(np.int64), np.concatenate([x, i[:, None]], axis=1)),
    "where": lambda x, i: (np.where(x, 1.0, x), np.where(i > 1, 0, i), np.where(i > 1, True, False)), "select": lambda x, i: np.select([x > 1, x < 0], [x, -x], 7),
    "isin": lambda x, i: np.isin(i, [1, 3]), "numbers": lambda x, i: (max(x[0, 1], x[0, 3]), min(x[0, 1], x[0, 4]), np.float64(x[0, 0])),
}

ARRAYS = {
    "axes": lambda x, i: (np.swapaxes(x, 0, 1), np.moveaxis(x[None], 0, -1), np.rollaxis(x, 1), np.expand_dims(x, (0, 2)), np.squeeze(x[:, None]), np.atleast_3d(x), np.atleast_2d(i)),
    "flips": lambda x, i: (np.flip(x), np.flip(x, 1), np.fliplr(x), np.flipud(x), np.rot90(x), np.rot90(x, 2), np.rot90(x, -1), np.rot90(x, 4)),
    "joins": lambda x, i: (np.vstack([i, i]), np.hstack([x, x]), np.hstack([i, i]), np.dstack([x, x]), np.column_stack([i, x]), np.append(x, x, axis=0), np.append(i, 2 * i)),
    "joined rows": lambda x, i: (np.concatenate(x), np.concatenate(x[:, None], axis=1), np.stack(x), np.stack(x, axis=1), np.vstack(x[:, None]), np.hstack(x), np.hstack(x[:, None]),
                                 np.dstack(x[:, None, None]), np.concatenate(np.stack([x, x]), axis=-1)),
    "repetitions": lambda x, i: (np.tile(x, 2), np.tile(x, (2, 1, 3)), np.tile(i, 1), np.repeat(x, 2), np.repeat(x, 3, axis=1), i.repeat(1)),
    "rolls": lambda x, i: (np.roll(x, 2, axis=1), np.roll(x, -1, axis=-1), np.roll(x[0], 7), np.roll(x, 1, axis=0), np.roll(x, -5, axis=0), np.roll(x, 18), np.roll(i, (2,), axis=(0,))),
    "borders": lambda x, i: (np.pad(x, ((0, 0), (1, 2))), np.pad(x, ((1, 0), (0, 1)), constant_values=2), np.pad(x, ((0, 0), (2, 1)), "edge"), np.pad(x, [(0, 0), (1, 3)], "reflect")),
    "parts": lambda x, i: (np.delete(x, 1, axis=1), np.delete(x, [0, 3], 1), np.take(x, i % 5, axis=1), np.take(x, [0, 2], axis=1), x.take(3), x[:, [0, 2, 2]]),
    "pairs": lambda x, i: (np.add.outer(x, i[:2]), np.subtract.outer(i, i), np.multiply.outer(x[0], x[:, 1]), np.true_divide.outer(x[:, 0], x[0]), np.maximum.outer(i, i[::-1]), np.minimum.outer(x, x[0]),
                           np.less.outer(x[:, 0], x[:, 1]), np.greater_equal.outer(i, i), np.equal.outer(i, i), np.outer(i, i), np.outer(x[0], i)),
    "blocks": lambda x, i: (np.kron(x, np.ones((1, 2), x.dtype)), np.kron(i, i), np.kron(x[0], x), np.kron(i, x[:1])),
    "one more": lambda x, i: (np.append(i, 3), np.append(x[0], 1.5), np.append(i > 1, i)),
    "along": lambda x, i: (np.take_along_axis(x, i[:, None] % 5, 1), np.take_along_axis(x, np.argmax(x, axis=1, keepdims=True), axis=1)),
    "diagonals": lambda x, i: (np.diag(x[0]), np.diag(i), np.trace(np.outer(x[0], x[0])), np.diagonal(x[0, :4].reshape(2, 2))),
    "new": lambda x, i: (np.arange(len(x)), np.arange(2, len(x) + 2), np.arange(0, len(x), 2), np.arange(len(x), dtype="f") * x[:, 0], np.eye(len(x)), np.identity(len(x)), np.tri(len(x))),
    "triangles": lambda x, i: (np.tril(np.ones((len(x), len(x)), bool)), np.triu(x), np.tril(x, -1)),
    "known": lambda x, i: (np.meshgrid(np.arange(3), np.arange(4))[0] + x[0, 0], np.triu_indices(3)[1] + i[0], np.hanning(5) * x, x[np.ix_([0, 0], [2, 3])]),
    "lists": lambda x, i: (np.array([x[0, 0], x[0, 1]]), np.array([[x[0, 0], 2 * x[0, 1]], [x[0, 2], x[0, 3]]]), np.asarray([x[0], x[0] + 1])),
    "the same": lambda x, i: (np.asarray(x), np.ascontiguousarray(x.T), np.array(x), x.flatten()),
}

REDUCTIONS = {
    "prod": lambda x, i: (np.prod(x, axis=1), np.prod(x), np.multiply.reduce(x), np.prod(i), np.prod(x > 0, axis=1)),
    "sum": lambda x, i: (np.sum(x, dtype="d"), np.sum(x > 0, axis=0), np.add.reduce(x), np.sum(i)),
    "extremes": lambda x, i: (np.ptp(x, axis=1), np.maximum.reduce(x), np.minimum.reduce(x, axis=1), np.max(i), x.max(axis=(0, 1), keepdims=True)),
    "truths": lambda x, i: (np.any(x), np.all(x, axis=(0, 1)), np.logical_and.reduce(x), np.logical_or.reduce(x > 0, axis=1), np.count_nonzero(x), np.count_nonzero(x > 0, axis=1)),
    "places": lambda x, i: (x.argmax(), np.argmin(x), np.argmax(x, axis=1, keepdims=True), np.argmax(i)),
    "deviations": lambda x, i: (np.std(x, ddof=1), x.std(0, ddof=1), np.var(x, axis=0, ddof=1), np.var(x, axis=(0, 1), ddof=3, keepdims=True), np.std(i, ddof=1)),
    "covariances": lambda x, i: (np.cov(x.T), np.cov(x, rowvar=False), np.cov(x), np.cov(x[:, 0]), np.cov(i), np.cov(x.T, bias=True), np.cov(x, ddof=2), np.vdot(x, x[::-1])),
    "quantiles of rows": lambda x, i: (np.quantile(x, 0.3, axis=0), np.percentile(x.astype("d"), 80), np.quantile(x, 1, axis=0, keepdims=True), np.percentile(x, 50, axis=0)),
    "median": lambda x, i: (np.median(x, axis=1), np.median(x[:, :4], axis=1, keepdims=True), np.median(x[0]), np.median(x, axis=0), np.median(x), np.median(i)),
    "orders": lambda x, i: (np.argsort(x, axis=0), np.argsort(i, kind="stable"), np.argsort(x.T, axis=0), np.sort(x > 0, axis=0), np.sort(i.astype("u1")), np.argsort(x > 1, axis=0, kind="stable")),
    "quantiles": lambda x, i: (np.quantile(x, 0.3, axis=1), np.percentile(x, 50, axis=1), np.percentile(x[:1], 100, axis=1)),
    "between infinities": lambda x, i: (np.median(x[:, :4], axis=1), np.quantile(x, 0.2, axis=1), np.quantile(x[:, :4], 0.25, axis=1)),
    "without NaN": lambda x, i: (np.nansum(x, axis=1), np.nanmean(x, axis=1)),
    "norms": lambda x, i: (np.linalg.norm(x, axis=1), np.linalg.norm(x), np.linalg.norm(x, 1, axis=1), np.linalg.norm(x, np.inf, axis=1, keepdims=True), np.linalg.norm(x, "fro")),
    "differences": lambda x, i: (np.diff(x), np.diff(i)),
    "products of ints": lambda x, i: (i @ i, i.dot(np.stack([i, -i], axis=1)), np.stack([i, -i]) @ i.astype("i"), (x > 0) @ (1 << np.arange(5)), i.astype("u1") @ i.astype("u1")),
    "products": lambda x, i: (np.outer(x[0], x[:, 0]), np.inner(x, x), np.tensordot(x, x, axes=([1], [1])), np.tensordot(x, x.T, 1), np.einsum("ij,kj->ik", x, x), np.einsum("ij->i", x),
                              np.matmul(np.stack([x, x]), x.T)),
}


def leaves(result):
    return result if isinstance(result, tuple) else (result,)


def rows(n, special):
    if special:
        return np.concatenate([SPECIAL] * 3)[:n]
    return np.random.RandomState(n).permutation(np.linspace(-3, 3, 5 * n)).reshape(n, 5)


@pytest.mark.filterwarnings("ignore::dy2static.errors.ExportWarning")
@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("name, special", [
    *((name, False) for name in (*ELEMENTS, *ARRAYS, *REDUCTIONS)),
    # sums of infinities depend on their order
    *((name, True) for name in (*ELEMENTS, *ARRAYS, "median", "between infinities", "truths", "places", "extremes"))])
def test_calls_are_ops(name, special, dtype):
    function = {**ELEMENTS, **ARRAYS, **REDUCTIONS}[name]
    program = exported(function, [InputSpec([None, 5], dtype), InputSpec([None], "int64")])     # refuses what still calls NumPy
    for n in (2, 3, 7):
        given = {"x": rows(n, special).astype(dtype), "i": np.arange(n) % 4 + 1}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            expected = leaves(function(given["x"].copy(), given["i"].copy()))
            found = interpret(program.graph, *[given[argument.name] for argument in program.arguments], *[p.array for p in program.parameters])
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected):
            assert np.asarray(ours).dtype == np.asarray(theirs).dtype and np.shape(ours) == np.shape(theirs), name
            np.testing.assert_allclose(ours, theirs, rtol=1e-5 if dtype == "f" else 1e-12, atol=1e-6 if dtype == "f" else 1e-12)
            if name in ("floor", "ceil", "trunc", "rint", "round", "sign"):
                np.testing.assert_array_equal(np.signbit(ours), np.signbit(theirs))
