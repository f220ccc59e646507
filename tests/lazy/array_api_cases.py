"""Calls of every function of the array API standard, version 2023.12: what is called on which arrays.

A case is (area, name, dtypes, arrays, call): letters of the dtypes its arrays may have, what the arrays are, and a function of a
namespace and the arrays.  Arrays: a number of them with one shape that fits all; ``"rows"`` one of one axis; ``"vectors"`` two of
three elements; ``"matrix"`` and ``"square"``, stacks of them; ``"positive"``, symmetric and positive definite.
"""
BOOL, SIGNED, UNSIGNED, REAL, COMPLEX = "?", "bhiq", "BHIQ", "fd", "FD"
INTEGERS = SIGNED + UNSIGNED
NUMBERS = INTEGERS + REAL
NUMERIC = NUMBERS + COMPLEX
FLOATS = REAL + COMPLEX

UNARY = (
    (NUMERIC, "abs isfinite isinf isnan negative positive square"),
    (FLOATS, "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 sin sinh sqrt tan tanh"),
    (NUMBERS, "ceil floor round sign trunc"), (BOOL + INTEGERS, "bitwise_invert"), (COMPLEX, "conj imag real sign"),
    (BOOL, "logical_not"), (REAL, "signbit"))
BINARY = (
    (NUMERIC, "add multiply subtract"), (FLOATS, "divide pow"), (REAL, "atan2 copysign hypot logaddexp"),
    (BOOL, "logical_and logical_or logical_xor"), (BOOL + INTEGERS, "bitwise_and bitwise_or bitwise_xor"),
    (NUMBERS, "floor_divide remainder greater greater_equal less less_equal maximum minimum"), (BOOL + NUMERIC, "equal not_equal"))
SHIFTS = "bitwise_left_shift bitwise_right_shift"


def _elementwise():
    for table, count in ((UNARY, 1), (BINARY, 2)):
        for dtypes, names in table:
            for name in names.split():
                yield "elementwise", name, dtypes, count, lambda xp, *arrays, name=name: getattr(xp, name)(*arrays)
    for name in SHIFTS.split():
        yield "elementwise", name, INTEGERS, 1, lambda xp, x, name=name: getattr(xp, name)(x, xp.full_like(x, 3))


CASES = [*_elementwise()] + [
    ("elementwise", "clip", NUMBERS, 1, lambda xp, x: xp.clip(x, 1, 5)),
    ("elementwise", "clip", REAL, 1, lambda xp, x: xp.clip(x, max=0.5)),
    ("elementwise", "round", REAL, 1, lambda xp, x: xp.round(x / 3)),

    ("creation", "arange", "d", 0, lambda xp: xp.arange(2, 11, 3)),
    ("creation", "arange", "d", 0, lambda xp: xp.arange(5.0, dtype=xp.float32)),
    ("creation", "asarray", "d", 0, lambda xp: xp.asarray([[1, 2], [3, 4]], dtype=xp.int16)),
    ("creation", "asarray", "d", 0, lambda xp: [xp.asarray(each) for each in (True, 1, 1.5, 1j, [False], [2, 2.5])]),
    ("creation", "asarray", NUMERIC, 1, lambda xp, x: xp.asarray(x, copy=True)),
    ("creation", "empty", "d", 0, lambda xp: xp.empty((2, 3), dtype=xp.int8) * 0),
    ("creation", "empty_like", NUMERIC, 1, lambda xp, x: xp.zeros_like(xp.empty_like(x))),
    ("creation", "eye", "d", 0, lambda xp: [xp.eye(3), xp.eye(2, 4, k=1, dtype=xp.int32), xp.eye(3, 2, k=-1)]),
    ("creation", "from_dlpack", NUMBERS, 1, lambda xp, x: xp.from_dlpack(x)),
    ("creation", "full", "d", 0, lambda xp: [xp.full((2, 3), value) for value in (True, 2, 0.5, 1j)]),
    ("creation", "full_like", NUMERIC, 1, lambda xp, x: xp.full_like(x, 7)),
    ("creation", "linspace", "d", 0, lambda xp: [xp.linspace(0, 3, 7), xp.linspace(-1.0, 1, 4, endpoint=False, dtype=xp.float32)]),
    ("creation", "meshgrid", NUMERIC, "row", lambda xp, x: [*xp.meshgrid(x, x[:2]), *xp.meshgrid(x, x[:1], indexing="ij")]),
    ("creation", "ones", "d", 0, lambda xp: [xp.ones(3), xp.ones((2, 0), dtype=xp.bool)]),
    ("creation", "ones_like", NUMERIC, 1, lambda xp, x: [xp.ones_like(x), xp.ones_like(x, dtype=xp.float64)]),
    ("creation", "tril", NUMERIC, "matrix", lambda xp, x: [xp.tril(x), xp.tril(x, k=-1)]),
    ("creation", "triu", NUMERIC, "matrix", lambda xp, x: [xp.triu(x), xp.triu(x, k=1)]),
    ("creation", "zeros", "d", 0, lambda xp: [xp.zeros(3), xp.zeros((), dtype=xp.complex64)]),
    ("creation", "zeros_like", NUMERIC, 1, lambda xp, x: xp.zeros_like(x)),

    ("manipulation", "broadcast_arrays", NUMERIC, "row", lambda xp, x: xp.broadcast_arrays(x, xp.ones((2, 1)))),
    ("manipulation", "broadcast_to", NUMERIC, 1, lambda xp, x: xp.broadcast_to(x, (2, *x.shape))),
    ("manipulation", "concat", NUMERIC, "matrix", lambda xp, x: [xp.concat([x, x], axis=-1), xp.concat((x, x), axis=None)]),
    ("manipulation", "expand_dims", NUMERIC, 1, lambda xp, x: [xp.expand_dims(x), xp.expand_dims(x, axis=-1)]),
    ("manipulation", "flip", NUMERIC, "matrix", lambda xp, x: [xp.flip(x), xp.flip(x, axis=-1), xp.flip(x, axis=(0, 1))]),
    ("manipulation", "moveaxis", NUMERIC, "matrix", lambda xp, x: [xp.moveaxis(x, 0, -1), xp.moveaxis(x, (0, 1), (-1, -2))]),
    ("manipulation", "permute_dims", NUMERIC, "matrix", lambda xp, x: xp.permute_dims(x, tuple(range(x.ndim))[::-1])),
    ("manipulation", "repeat", NUMERIC, "row", lambda xp, x: [xp.repeat(x, 2), xp.repeat(x, xp.arange(x.shape[0]))]),
    ("manipulation", "reshape", NUMERIC, 1, lambda xp, x: [xp.reshape(x, (x.size,)), xp.reshape(x, (1, *x.shape), copy=True)]),
    ("manipulation", "roll", NUMERIC, "matrix", lambda xp, x: [xp.roll(x, 1), xp.roll(x, -2, axis=-1), xp.roll(x, (1, 2), axis=(0, 1))]),
    ("manipulation", "squeeze", NUMERIC, 1, lambda xp, x: xp.squeeze(xp.expand_dims(x), 0)),
    ("manipulation", "stack", NUMERIC, 2, lambda xp, x, y: [xp.stack([x, y]), xp.stack((x, y), axis=-1)]),
    ("manipulation", "tile", NUMERIC, "matrix", lambda xp, x: xp.tile(x, (2, 1, 2))),
    ("manipulation", "unstack", NUMERIC, "matrix", lambda xp, x: [*xp.unstack(x), *xp.unstack(x, axis=-1)]),
    ("manipulation", "astype", NUMERIC, 1, lambda xp, x: xp.astype(x, xp.complex128)),
    ("manipulation", "astype", "bhi?", 1, lambda xp, x: [xp.astype(x, xp.float32), xp.astype(x, xp.int64, copy=False)]),

    ("searching", "argmax", NUMBERS, "matrix", lambda xp, x: [xp.argmax(x), xp.argmax(x, axis=-1, keepdims=True)]),
    ("searching", "argmin", NUMBERS, "matrix", lambda xp, x: [xp.argmin(x), xp.argmin(x, axis=0, keepdims=True)]),
    ("searching", "nonzero", NUMERIC, "matrix", lambda xp, x: xp.nonzero(x)),
    ("searching", "searchsorted", NUMBERS, "row", lambda xp, x: [xp.searchsorted(xp.sort(x), x), xp.searchsorted(
        x, x, side="right", sorter=xp.argsort(x))]),
    ("searching", "where", NUMERIC, 2, lambda xp, x, y: xp.where(x == y, x, y)),
    ("searching", "take", NUMERIC, "matrix", lambda xp, x: xp.take(x, xp.asarray([1, 0, 1]), axis=-1)),

    ("sorting", "argsort", NUMBERS, "matrix", lambda xp, x: [xp.argsort(x), xp.argsort(x, axis=0, descending=True)]),
    ("sorting", "sort", NUMBERS, "matrix", lambda xp, x: [xp.sort(x), xp.sort(x, axis=0, descending=True, stable=False)]),

    ("set", "unique_all", NUMBERS, 1, lambda xp, x: xp.unique_all(x)),
    ("set", "unique_counts", NUMBERS, 1, lambda xp, x: xp.unique_counts(x)),
    ("set", "unique_inverse", NUMBERS, 1, lambda xp, x: xp.unique_inverse(x)),
    ("set", "unique_values", NUMBERS, 1, lambda xp, x: xp.unique_values(x)),

    ("statistical", "cumulative_sum", NUMERIC, "row", lambda xp, x: [xp.cumulative_sum(x), xp.cumulative_sum(x, include_initial=True)]),
    ("statistical", "cumulative_sum", NUMERIC, "matrix", lambda xp, x: xp.cumulative_sum(x, axis=-2, include_initial=True)),
    *[("statistical", name, NUMBERS, "matrix", lambda xp, x, name=name: [
        getattr(xp, name)(x), getattr(xp, name)(x, axis=-1, keepdims=True), getattr(xp, name)(x, axis=(0, 1))])
      for name in ("max", "min")],
    *[("statistical", name, NUMERIC, "matrix", lambda xp, x, name=name: [
        getattr(xp, name)(x), getattr(xp, name)(x, axis=-1, keepdims=True), getattr(xp, name)(x, axis=(0, 1))])
      for name in ("sum", "prod")],
    ("statistical", "sum", "bhBHf", "matrix", lambda xp, x: xp.sum(x, axis=0, dtype=xp.float64)),
    ("statistical", "mean", REAL, "matrix", lambda xp, x: [xp.mean(x), xp.mean(x, axis=-1, keepdims=True)]),
    *[("statistical", name, REAL, "matrix", lambda xp, x, name=name: [
        getattr(xp, name)(x), getattr(xp, name)(x, axis=0, correction=1), getattr(xp, name)(x, axis=-1, correction=0.5, keepdims=True)])
      for name in ("std", "var")],
    *[("utility", name, BOOL + NUMERIC, "matrix", lambda xp, x, name=name: [
        getattr(xp, name)(x), getattr(xp, name)(x, axis=0), getattr(xp, name)(x, axis=(0, 1), keepdims=True)])
      for name in ("all", "any")],

    ("linear algebra", "matmul", NUMERIC, "square", lambda xp, x: [xp.matmul(x, x), x @ xp.matrix_transpose(x), xp.linalg.matmul(x, x)]),
    ("linear algebra", "matrix_transpose", NUMERIC, "matrix", lambda xp, x: [xp.matrix_transpose(x), x.mT]),
    ("linear algebra", "tensordot", NUMERIC, "square", lambda xp, x: [xp.tensordot(x, x, axes=1), xp.tensordot(
        x, x, axes=((-1,), (-2,)))]),
    ("linear algebra", "vecdot", NUMERIC, "matrix", lambda xp, x: [xp.vecdot(x, x), xp.vecdot(x, x, axis=-2)]),
    ("linalg", "cholesky", REAL, "positive", lambda xp, x: [xp.linalg.cholesky(x), xp.linalg.cholesky(x, upper=True)]),
    ("linalg", "cross", NUMBERS, "vectors", lambda xp, x, y: xp.linalg.cross(x, y)),
    ("linalg", "det", REAL, "square", lambda xp, x: xp.linalg.det(x)),
    ("linalg", "diagonal", NUMERIC, "matrix", lambda xp, x: [xp.linalg.diagonal(x), xp.linalg.diagonal(x, offset=1)]),
    ("linalg", "eigh", REAL, "positive", lambda xp, x: xp.linalg.eigh(x)[0]),
    ("linalg", "eigvalsh", REAL, "positive", lambda xp, x: xp.linalg.eigvalsh(x)),
    ("linalg", "inv", REAL, "positive", lambda xp, x: xp.linalg.inv(x)),
    ("linalg", "matrix_norm", FLOATS, "matrix", lambda xp, x: [xp.linalg.matrix_norm(x, ord=order) for order in ("fro", 1, -1)]),
    ("linalg", "matrix_power", REAL, "positive", lambda xp, x: [xp.linalg.matrix_power(x, n) for n in (0, 1, 3, -1)]),
    ("linalg", "matrix_rank", REAL, "positive", lambda xp, x: [xp.linalg.matrix_rank(x), xp.linalg.matrix_rank(x, rtol=0.5)]),
    ("linalg", "outer", NUMERIC, "row", lambda xp, x: xp.linalg.outer(x, x)),
    ("linalg", "pinv", REAL, "positive", lambda xp, x: xp.linalg.pinv(x)),
    ("linalg", "qr", REAL, "positive", lambda xp, x: [xp.linalg.qr(x).Q @ xp.linalg.qr(x).R, abs(xp.linalg.qr(x, mode="complete").R)]),
    ("linalg", "slogdet", REAL, "positive", lambda xp, x: xp.linalg.slogdet(x)),
    ("linalg", "solve", REAL, "positive", lambda xp, x: [xp.linalg.solve(x, x), xp.linalg.solve(x, xp.ones(x.shape[-1], dtype=x.dtype))]),
    ("linalg", "svd", REAL, "positive", lambda xp, x: [xp.linalg.svd(x).S, xp.linalg.svd(x, full_matrices=False)[1]]),
    ("linalg", "svdvals", REAL, "positive", lambda xp, x: xp.linalg.svdvals(x)),
    ("linalg", "trace", NUMERIC, "matrix", lambda xp, x: [xp.linalg.trace(x), xp.linalg.trace(x, offset=-1)]),
    ("linalg", "vector_norm", FLOATS, "matrix", lambda xp, x: [
        xp.linalg.vector_norm(x), xp.linalg.vector_norm(x, axis=-1, keepdims=True), *[
            xp.linalg.vector_norm(x, axis=0, ord=order) for order in (1, 2, 3, float("inf"), float("-inf"), 0)]]),

    *[("fft", name, "FD", "row", lambda xp, x, name=name: [
        getattr(xp.fft, name)(x), getattr(xp.fft, name)(x, n=5, norm="ortho")]) for name in ("fft", "ifft", "irfft", "hfft")],
    *[("fft", name, REAL, "row", lambda xp, x, name=name: [
        getattr(xp.fft, name)(x), getattr(xp.fft, name)(x, n=5, norm="forward")]) for name in ("rfft", "ihfft")],
    *[("fft", name, "FD", "matrix", lambda xp, x, name=name: [
        getattr(xp.fft, name)(x), getattr(xp.fft, name)(x, s=(2, 4), axes=(0, 1))]) for name in ("fftn", "ifftn", "irfftn")],
    ("fft", "rfftn", REAL, "matrix", lambda xp, x: [xp.fft.rfftn(x), xp.fft.rfftn(x, axes=(0, 1), norm="ortho")]),
    ("fft", "fftfreq", "d", 0, lambda xp: [xp.fft.fftfreq(5), xp.fft.fftfreq(4, d=0.5)]),
    ("fft", "rfftfreq", "d", 0, lambda xp: [xp.fft.rfftfreq(5), xp.fft.rfftfreq(4, d=0.5)]),
    ("fft", "fftshift", FLOATS, "matrix", lambda xp, x: [xp.fft.fftshift(x), xp.fft.fftshift(x, axes=0)]),
    ("fft", "ifftshift", FLOATS, "matrix", lambda xp, x: [xp.fft.ifftshift(x), xp.fft.ifftshift(x, axes=0)]),

    ("dtypes", "can_cast", NUMERIC, 1, lambda xp, x: [xp.can_cast(x, x.dtype), xp.can_cast(xp.int8, xp.int16), xp.can_cast(
        xp.int16, xp.int8)]),
    ("dtypes", "finfo", "fd", 1, lambda xp, x: [getattr(xp.finfo(x.dtype), name) for name in "bits eps max min smallest_normal".split()]),
    ("dtypes", "iinfo", INTEGERS, 1, lambda xp, x: [getattr(xp.iinfo(x.dtype), name) for name in ("bits", "max", "min")]),
    ("dtypes", "isdtype", NUMERIC, 1, lambda xp, x: [xp.isdtype(x.dtype, kind) for kind in (
        "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric", ("bool", "integral"))]),
    ("dtypes", "result_type", NUMERIC, 1, lambda xp, x: [xp.asarray(0, dtype=xp.result_type(x, x)), xp.asarray(
        0, dtype=xp.result_type(xp.int8, xp.uint8))]),
    ("info", "__array_namespace_info__", "d", 0, lambda xp: [
        sorted(xp.__array_namespace_info__().dtypes(kind=kind)) for kind in ("integral", "numeric", ("bool", "real floating"))]),
    ("constants", "constants", "d", 0, lambda xp: [xp.e, xp.pi, xp.inf, xp.nan, xp.newaxis]),
]

#: Attributes and methods of arrays, and indexing.
CASES += [("array object", name, dtypes, arrays, call) for name, dtypes, arrays, call in [
    ("operators", NUMERIC, 2, lambda xp, x, y: [x + y, x - y, x * y, x == y, x != y, +x, abs(x)]),
    ("operators", REAL, 2, lambda xp, x, y: [x / y, x // y, x % y, x < y, x <= y, x > y, x >= y, x + 2, 1.5 * x, 3 - x, -x]),
    ("operators", INTEGERS, 2, lambda xp, x, y: [x & y, x | y, x ^ y, ~x, x << 1, x >> 1, x + 2, 3 * x]),
    ("attributes", NUMERIC, "matrix", lambda xp, x: [x.ndim, x.size, *x.shape, x.mT]),
    ("T", NUMERIC, "square", lambda xp, x: x.T if x.ndim == 2 else x),
    ("conversions", "id", 1, lambda xp, x: [float(xp.sum(x)), bool(xp.any(x != 0)), complex(xp.sum(x))]),
    ("conversions", "i", 1, lambda xp, x: [int(xp.sum(x)), range(50)[xp.asarray(3)]]),
    ("indexing", NUMERIC, "matrix", lambda xp, x: [x[0, ...], x[..., -1], x[1:, ...], x[..., ::-1], x[:, None, ...], x[..., 1]]),
    ("masks", NUMERIC, "row", lambda xp, x: x[x == x[0]]),
    ("to_device", NUMERIC, 1, lambda xp, x: x.to_device(x.device)),
]]
