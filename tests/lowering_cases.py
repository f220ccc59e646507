"""Calls of Chainer functions: those that are lowered, and those that stay whole."""
import chainer.functions as F
import numpy as np

LABELS = np.array([2, 0, -1, 1, 2], np.int32)
IDS = np.array([[2, 0], [1, 2]], np.int32)


class Case:
    """A call of Chainer functions.

    operands: shapes, filled at random between low and high, or arrays taken as they are.
    exact: whether the values must be the same to the last bit.
    twice: whether it can be differentiated twice.
    """

    def __init__(self, name, function, *operands, low=-2.0, high=2.0, exact=True, twice=True, dtypes="e f d"):
        self.name, self.function, self.operands = name, function, operands
        self.low, self.high, self.exact, self.twice, self.dtypes = low, high, exact, twice, dtypes.split()

    def __str__(self):
        return self.name

    def arrays(self, dtype, seed=0):
        rng = np.random.RandomState(seed)
        return [rng.uniform(self.low, self.high, operand).astype(dtype) if isinstance(operand, tuple) else operand
                for operand in self.operands]


def unary(name, function, **options):
    """One function of one array, in several shapes."""
    return [Case(f"{name}{shape}", function, shape, **options) for shape in ((4, 3), (), (0, 3), (1,))]


def binary(name, function, **options):
    """One function of two arrays that broadcast."""
    return [Case(f"{name}{a}{b}", function, a, b, **options)
            for a, b in (((4, 3), (4, 3)), ((4, 3), (3,)), ((4, 1), (1, 3)), ((), (2,)), ((0, 3), (3,)),
                         ((2, 1, 3), (4, 1)))]


CASES = [
    *binary("add", lambda a, b: a + b),
    *binary("sub", lambda a, b: a - b),
    *binary("mul", lambda a, b: a * b),
    *binary("div", lambda a, b: a / b, low=0.5),
    *binary("pow", lambda a, b: a ** b, low=0.5),
    Case("multi_add", lambda a, b, c: F.add(a, b, c), (2, 3), (3,), (2, 1)),
    Case("multi_add one", lambda a: F.add(a), (2, 3)),
    *unary("neg", lambda x: -x),
    *unary("abs", lambda x: abs(x)),
    *unary("add constant", lambda x: x + 1.1),
    *unary("sub constant", lambda x: x - 1.1),
    *unary("sub from constant", lambda x: 1.1 - x),
    *unary("mul constant", lambda x: x * np.float64(1.1)),
    *unary("div constant", lambda x: x / 3),
    *unary("div from constant", lambda x: 1.1 / x, low=0.5),
    *(case for exponent in (2, 3, 0.5, 1, 0, -1, -2.5, np.float32(3))
      for case in unary(f"pow {exponent!r}", lambda x, exponent=exponent: x ** exponent, low=0.5)),
    *unary("constant pow", lambda x: 1.7 ** x),
    Case("linear", F.linear, (4, 3), (2, 3), (2,)),
    Case("linear no bias", F.linear, (4, 3), (2, 3)),
    Case("linear empty", F.linear, (0, 3), (2, 3), (2,)),
    Case("linear one", F.linear, (1, 1), (1, 1), (1,)),
    Case("embed_id", lambda W: F.embed_id(IDS, W), (3, 2)),
    Case("embed_id ignore", lambda W: F.embed_id(IDS, W, ignore_label=2), (3, 2)),
    Case("embed_id ignore negative", lambda W: F.embed_id(LABELS, W, ignore_label=-1), (3, 2)),
    *unary("relu", F.relu),
    *unary("tanh", F.tanh),
    *unary("sigmoid", F.sigmoid),
    *unary("leaky_relu", F.leaky_relu),
    *unary("leaky_relu negative", lambda x: F.leaky_relu(x, -0.5)),
    *unary("elu", F.elu, exact=False),
    *unary("elu negative", lambda x: F.elu(x, -0.7), exact=False),
    *unary("softplus", F.softplus, exact=False),
    *unary("softplus 2", lambda x: F.softplus(x, 2), exact=False),
    *unary("clipped_relu", lambda x: F.clipped_relu(x, 0.75)),
    Case("crelu", F.crelu, (4, 3)),
    Case("prelu", F.prelu, (4, 3), (3,)),
    Case("prelu of one", F.prelu, (4, 3), ()),
    Case("prelu of images", F.prelu, (2, 3, 2), (3,)),
    Case("swish", F.swish, (2, 3, 2), (3,)),
    *(Case(f"huber_loss {options}", lambda x, t, options=options: F.huber_loss(x, t, **options), (4, 3), (4, 3))
      for options in ({"delta": 1.0}, {"delta": 0.3, "reduce": "no"})),
    Case("transpose_sequence", lambda *xs: F.transpose_sequence(xs), (3, 2), (3, 2), (1, 2)),
    Case("transpose_sequence of one", lambda *xs: F.transpose_sequence(xs), (1, 2), (1, 2)),
    Case("pad_sequence", lambda *xs: F.pad_sequence(xs, padding=-1), (1, 2), (3, 2)),
    Case("pad_sequence to length", lambda *xs: F.pad_sequence(xs, 4), (0, 2), (3, 2)),
    *(Case(f"permutate {inv}", lambda x, inv=inv: F.permutate(x, np.array([2, 0, 1]), 1, inv), (2, 3))
      for inv in (False, True)),
    Case("zoneout", lambda h, x: F.zoneout(h, x, 0.3), (4, 3), (4, 3)),
    *unary("hard_sigmoid", F.hard_sigmoid, low=-4.0, high=4.0),
    *(Case(f"{f.__name__} {shape} {axis}", lambda x, f=f, axis=axis: f(x, axis=axis), shape)
      for f in (F.softmax, F.log_softmax)
      for shape, axis in (((4, 3), 1), ((2, 3, 4), -1), ((3,), 0), ((0, 3), 1), ((5, 1), 1))),
    *(Case(f"softmax_cross_entropy {shape} {options}",
           lambda x, t=t, options=options: F.softmax_cross_entropy(x, t, **options), shape, exact=False, twice=False)
      for shape, t in (((5, 3), LABELS), ((2, 3, 2), np.array([[0, 2], [-1, 1]], "l")), ((1, 1), LABELS[1:2]))
      for options in ({}, {"normalize": False}, {"reduce": "no"}, {"ignore_label": 2})),
    Case("mean_squared_error", F.mean_squared_error, (4, 3), (4, 3)),
    Case("mean_squared_error one", F.mean_squared_error, (), ()),
    Case("mean_absolute_error", F.mean_absolute_error, (4, 3), (4, 3)),
    Case("squared_error", F.squared_error, (4, 3), (4, 3)),
    Case("absolute_error", F.absolute_error, (4, 3), (4, 3)),
    *(Case(f"sigmoid_cross_entropy {options}",
           lambda x, options=options: F.sigmoid_cross_entropy(x, LABELS % 3 - 1, **options), (5,))
      for options in ({}, {"normalize": False}, {"reduce": "no"})),
    *unary("reshape", lambda x: x.reshape(-1, 1)),
    *unary("flatten", F.flatten),
    *unary("expand_dims", lambda x: F.expand_dims(x, 0)),
    *unary("expand_dims last", lambda x: F.expand_dims(x, -1)),
    Case("squeeze", F.squeeze, (1, 3, 1)),
    Case("squeeze axis", lambda x: F.squeeze(x, -1), (1, 3, 1)),
    Case("squeeze axes", lambda x: F.squeeze(x, (0, 2)), (1, 3, 1)),
    Case("broadcast_to", lambda x: F.broadcast_to(x, (4, 2, 3)), (2, 1)),
    Case("broadcast", lambda a, b: F.broadcast(a, b), (2, 1), (3,)),
    *unary("transpose", F.transpose),
    Case("transpose axes", lambda x: F.transpose(x, (1, -1, 0)), (2, 3, 4)),
    Case("swapaxes", lambda x: F.swapaxes(x, 0, -1), (2, 3, 4)),
    Case("rollaxis", lambda x: F.rollaxis(x, 2, 1), (2, 3, 4)),
    Case("rollaxis negative", lambda x: F.rollaxis(x, -1), (2, 3, 4)),
    Case("moveaxis", lambda x: F.moveaxis(x, 0, -1), (2, 3, 4)),
    Case("moveaxis two", lambda x: F.moveaxis(x, (0, 1), (-1, 0)), (2, 3, 4)),
    Case("flip", lambda x: F.flip(x, -1), (2, 3)),
    Case("fliplr", F.fliplr, (2, 3)),
    *(Case(f"getitem {index}", lambda x, index=index: x[index], (4, 3)) for index in (
        0, -1, slice(1, 3), (slice(None), 1), (1, 2), (Ellipsis, 0), None, slice(None, None, -2), (0, slice(5, 9)),
        (Ellipsis, 1, np.int64(2)))),
    Case("getitem one", lambda x: x[()], ()),
    *(Case(f"split_axis {indices}", lambda x, indices=indices: F.split_axis(x, indices, 1), (2, 6))
      for indices in (2, 1, [1, 4], [0, 0, 6], (2,), [], np.array([1, 4]))),
    Case("split_axis some", lambda x: F.split_axis(x, 3, -1)[1], (2, 6)),
    Case("separate", lambda x: F.separate(x, 1), (2, 3)),
    Case("separate some", lambda x: F.separate(x)[1], (2, 3)),
    Case("separate one", lambda x: F.separate(x), (1, 3)),
    Case("getitem array", lambda x: x[IDS], (4, 3)),
    Case("getitem array second", lambda x: x[:, IDS[0]], (4, 3)),
    *(Case(f"pad {width}", lambda x, width=width: F.pad(x, width, "constant"), (2, 3))
      for width in (1, (1, 2), [[1, 0], [0, 2]])),
    Case("flipud", F.flipud, (2, 3)),
    Case("select_item", lambda x: F.select_item(x, IDS[0]), (2, 3)),
    Case("concat", lambda *xs: F.concat(xs), (2, 3), (2, 0), (2, 1)),
    Case("concat axis", lambda *xs: F.concat(xs, axis=-2), (2, 3), (1, 3)),
    Case("concat one", lambda *xs: F.concat(xs), (2, 3)),
    Case("stack", lambda *xs: F.stack(xs), (2, 3), (2, 3)),
    Case("stack last", lambda *xs: F.stack(xs, -1), (), ()),
    *(Case(f"{f.__name__} {shapes}", lambda *xs, f=f: f(xs), *shapes) for f in (F.hstack, F.vstack)
      for shapes in ([(2, 3), (2, 3)], [(3,), (3,)], [(), ()], [(2, 3)], [()])),
    *(Case(f"tile {reps}", lambda x, reps=reps: F.tile(x, reps), (2, 3))
      for reps in (2, (1, 1), (2, 1, 2), (0, 1), (3, 1))),
    Case("tile column", lambda x: F.tile(x, (1, 4)), (2, 1)),
    Case("repeat", lambda x: F.repeat(x, 2, axis=1), (2, 3)),
    Case("repeat flat", lambda x: F.repeat(x, 2), (2, 3)),
    Case("repeat once", lambda x: F.repeat(x, 1, axis=0), (2, 3)),
    *(Case(f"cast {dtype}", lambda x, dtype=dtype: F.cast(x, dtype), (2, 3)) for dtype in ("f", "d", np.float16)),
    Case("cast to int and back", lambda x: F.cast(F.cast(x, "i"), "f"), (2, 3)),
    Case("copy", lambda x: F.copy(x, "@numpy"), (2, 3)),
    Case("where", lambda a, b: F.where(np.array([True, False, True]), a, b), (4, 3), (4, 3)),
    Case("where broadcast", lambda a, b: F.where(np.array([True, False, True]), a, b), (4, 1), ()),
    *(case for f in (F.exp, F.sin, F.cos, F.square, F.expm1, F.identity) for case in unary(f.__name__, f)),
    *(case for f in (F.log, F.sqrt, F.log1p) for case in unary(f.__name__, f, low=0.5)),
    *unary("tan", F.tan, low=-1.0, high=1.0),
    *unary("rsqrt", F.rsqrt, low=0.5),
    *unary("clip", lambda x: F.clip(x, -0.5, 0.5)),
    *unary("clip below", lambda x: F.clip(x, None, 1)),
    *binary("maximum", F.maximum),
    *binary("minimum", F.minimum),
    Case("maximum of equals", lambda x: F.maximum(x, x), (2, 3)),
    Case("linear_interpolate", F.linear_interpolate, (2, 3), (2, 3), (2, 3)),
    *(Case(f"matmul {a} {b} {options}", lambda a, b, options=options: F.matmul(a, b, **options), a, b, exact=False)
      for a, b, options in (
          ((4, 3), (3, 2), {}), ((3, 4), (2, 3), {"transa": True, "transb": True}), ((3,), (3,), {}),
          ((4, 3), (3,), {}), ((3,), (3, 2), {}), ((3,), (2, 3), {"transb": True}), ((3, 4), (3,), {"transa": True}),
          ((2, 4, 3), (3, 2), {}), ((2, 1, 4, 3), (5, 3, 2), {}), ((2, 3, 4), (3,), {"transa": True}),
          ((0, 3), (3, 2), {}), ((3,), (2, 3, 4), {}))),
    Case("matmul operator", lambda a, b: a @ b, (4, 3), (3, 2)),
    Case("batch_matmul", F.batch_matmul, (2, 4, 3), (2, 3), exact=False, dtypes="f"),
    Case("batch_matmul turned", lambda a, b: F.batch_matmul(a, b, transa=True), (2, 3, 4), (2, 3, 2), exact=False,
         dtypes="f"),
    *(Case(f"{f.__name__} {shape} {options}", lambda x, f=f, options=options: f(x, **options), shape)
      for f in (F.sum, F.max, F.min, F.average)
      for shape, options in (((4, 3), {}), ((4, 3), {"axis": 0}), ((2, 3, 4), {"axis": (0, -1)}), ((), {}), ((1,), {}),
                             ((2, 3, 4), {"axis": 1, "keepdims": True}), ((0, 3), {"axis": 1}))),
    Case("sum of none", F.sum, (0, 3)),
    Case("sum of equals", lambda x: F.max(F.concat([x, x])), (2, 3)),
    Case("sum_to", lambda x: F.sum_to(x, (3, 1)), (2, 3, 4)),
    Case("average weights", lambda x, w: F.average(x, 1, w), (2, 3), (3,), low=0.5),
    Case("argmax", lambda x: F.argmax(x, axis=1), (4, 3)),
    Case("argmin", F.argmin, (4, 3)),
    *(Case(f"logsumexp {axis}", lambda x, axis=axis: F.logsumexp(x, axis), (2, 3, 4)) for axis in (None, 1, (0, -1))),
    *(Case(f"dropout {shape} {ratio}", lambda x, ratio=ratio: F.dropout(x, ratio), shape)
      for shape in ((4, 3), (0, 3), (1,)) for ratio in (0.5, 0.2, 0)),
    Case("accuracy", lambda x: F.accuracy(x, np.maximum(LABELS, 0)), (5, 3)),
    Case("accuracy shapes", lambda x: F.accuracy(x, IDS), (2, 3, 2, 1)),
    Case("lstm", F.lstm, (3, 2), (3, 8)),
    Case("lstm ended", F.lstm, (3, 2), (2, 8)),
    Case("lstm h", lambda c, x: F.lstm(c, x)[1], (3, 2), (3, 8)),
    Case("lstm c", lambda c, x: F.lstm(c, x)[0], (3, 2), (2, 8)),
    Case("lstm images", F.lstm, (3, 2, 2, 1), (3, 8, 2, 1)),
    Case("layer_normalization", F.layer_normalization, (4, 3), (3,), (3,), exact=False),
]


DECLINED = [
    Case("linear of two dtypes", lambda x: F.linear(x, np.ones((2, 3))), (4, 3)),
    Case("soft labels", lambda x: F.softmax_cross_entropy(x, np.ones((4, 3), "f")), (4, 3)),
    Case("class weight", lambda x: F.softmax_cross_entropy(x, LABELS[:4], class_weight=np.ones(3, "f")), (4, 3)),
    Case("no cached score", lambda x: F.softmax_cross_entropy(x, LABELS[:4], cache_score=False), (4, 3)),
    Case("no labels", lambda x: F.softmax_cross_entropy(x, LABELS[:0]), (0, 3)),
    Case("overlapping parts", lambda x: F.split_axis(x, [3, 1], 0), (4, 3)),
    Case("index of a list", lambda x: x[[0, 1]], (4, 3)),
    Case("index of a mask", lambda x: x[np.array([True, False, True, True])], (4, 3)),
    Case("mask asked for", lambda x: F.dropout(x, return_mask=True)[0], (4, 3)),
    Case("mask given", lambda x: F.dropout(x, mask=np.ones((4, 3), "f")), (4, 3)),
    Case("accuracy with a label to ignore", lambda x: F.accuracy(x, LABELS[:4], ignore_label=-1), (4, 3)),
    Case("product of two dtypes", lambda x: F.matmul(x, np.ones((3, 2))), (4, 3)),
    Case("padding that is not constant", lambda x: F.pad(x, 1, "edge"), (4, 3)),
    Case("repeats per element", lambda x: F.repeat(x, (1, 2, 0), axis=1), (4, 3)),
]
