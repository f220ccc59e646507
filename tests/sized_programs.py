"""Functions on arrays of any size, and how their calls are compared with eager ones."""
import copy

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import testing

RNG = np.random.RandomState(0)
SIZES = (3, 4, 6, 5, 9, 2, 12)


def floats(*shape):
    return RNG.uniform(-1, 1, shape).astype("f")


TABLE = floats(40, 6)


def labels(n, classes=4):
    return RNG.randint(0, classes, n).astype("i")


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1, self.l2, self.embed = L.Linear(6, 6), L.Linear(6, 4), L.EmbedID(11, 6)
            self.conv, self.norm = L.Convolution2D(3, 4, 3, pad=1), L.LayerNormalization(6)
            self.batch_norm, self.fc = L.BatchNormalization(4), L.Linear(64, 4)
            self.fc2, self.l3 = L.Linear(4, 2), L.Linear(6, 6)
            self.lstm = L.LSTM(6, 6)


def branch(net, x):
    return F.sum(x) * 2 if x.shape[0] > 7 else F.sum(x)


def deviation(net, x):
    mean = F.mean(x, axis=0)
    return F.sum((x - F.broadcast_to(mean, x.shape)) ** 2) / x.shape[0]


def with_state(net, x):
    net.seen = x.shape[0]
    net.total = getattr(net, "total", 0) + len(x)
    return F.sum(net.l1(x))


def resized(mode, align_corners):
    def back(net, x):
        h = F.max_pooling_2d(F.relu(net.conv(x)), 3, stride=2, pad=1)
        return F.resize_images(h, x.shape[2:], mode=mode, align_corners=align_corners)
    return back


def loss(net, x, t):
    y = net.l2(F.relu(net.l1(x)))
    return F.softmax_cross_entropy(y, t) + F.accuracy(y, t)


def image_loss(net, x, t):
    h = F.dropout(F.max_pooling_2d(F.relu(net.batch_norm(net.conv(x))), 2), 0.3)
    return F.softmax_cross_entropy(net.fc(h), t, normalize=False)


def attention(net, x):
    q = net.l1(x, n_batch_axes=2)
    weights = F.softmax(F.matmul(q, x, transb=True) / np.float32(x.shape[-1] ** 0.5), axis=2)
    return F.mean(net.norm(F.reshape(F.matmul(weights, x), (-1, 6))) ** 2)


def unrolled(net, x):
    net.lstm.reset_state()
    for _ in range(2):
        h = net.lstm(x)
    return F.sum(h ** 2)


def over_steps(net, x):
    net.lstm.reset_state()
    for i in range(x.shape[0]):
        h = net.lstm(x[i])
    return F.sum(h ** 2)


def over_rows(net, x):
    h = np.zeros((2, 6), "f")
    for row in x:
        h = F.tanh(net.l1(h + row))
    return F.sum(h ** 2)


def over_arrays(net, x):
    total = 0.0
    for row in x.array:
        total = total + float(row.sum())
    return F.sum(x) * total


def stacked_states(net, x):
    net.lstm.reset_state()
    states = []
    for row in F.separate(x, axis=0):
        states.append(net.lstm(row))
    return F.sum(F.stack(states) ** 2) + len(F.separate(x))


def next_steps(net, x):
    net.lstm.reset_state()
    loss = count = 0
    for t in range(len(x) - 1):
        loss += F.mean_squared_error(net.l1(net.lstm(x[t])), x[t + 1])
        count += 1
    return loss / count


def with_iterators(net, x):
    net.lstm.reset_state()
    loss = 0
    for i, (row, following) in enumerate(zip(x[:-1], x[1:]), 1):
        loss += F.mean_squared_error(net.lstm(row), following) * i
    return loss


def backwards(net, x):
    net.lstm.reset_state()
    for row in reversed(F.separate(x)):
        h = net.lstm(row)
    for i in reversed(range(len(x))):
        h = net.l1(h) + x[i]
    return F.sum(h)


def in_place(net, x):
    a = x.array.copy()
    a[0] = 5
    a[-1] += 1
    a[:len(x) // 2] *= 2
    a[:7] -= 3
    return F.sum(x * a)


def halving(net, x):
    n, steps = len(x), 0
    while n > 1:
        n, steps = n // 2, steps + 1
    return F.sum(x) * steps


def largest(net, x):
    best = None
    for i in range(len(x)):
        norm = F.sum(x[i] ** 2)
        if best is None or float(norm.array) > float(best.array):
            best = norm
    return best


def until(net, x):
    total = 0.0
    for i, row in enumerate(x):
        if i % 3 == 1:
            continue
        total = total + F.sum(row)
        if float(total.array) > 1:
            break
    else:
        total = total * 3
    return total * i


def pairs(net, x):
    total = F.sum(x) * 0
    for i in range(len(x)):
        for j in range(i):
            total = total + F.sum(x[i] * x[j])
    return total


def moving(net, x):
    net.batch_norm.avg_mean[:] *= 0.5
    for row in x.array:
        net.batch_norm.avg_mean[:] += row[:4] * 0.1
    return F.sum(x) * net.batch_norm.avg_mean[0]


def over_columns(net, x):
    h = np.zeros((x.shape[0], 6), "f")
    for i in range(x.shape[1]):
        h = F.tanh(net.l1(h + x[:, i]))
    return F.sum(h ** 2)


def last_of_steps(net, i):
    e, c, hs = net.embed(i), None, []
    z, f = F.tanh(net.l1(e, n_batch_axes=2)), F.sigmoid(net.l3(e, n_batch_axes=2))
    for k in range(i.shape[1]):
        c = z[:, k] if c is None else f[:, k] * c + z[:, k]
        hs.append(f[:, k] * c)
    y = net.l2(hs[-1])
    net.cleargrads()
    F.sum(y * y).backward()
    return y


def both_directions(net, x):
    steps = [F.tanh(net.l1(x[:, i])) for i in range(x.shape[1])]
    there, back = [], []
    for i in range(len(steps)):
        there.append(steps[i] if i == 0 else steps[i] * there[-1])
    h = steps[-1]
    for i in range(x.shape[1])[::-1]:
        h = h * steps[i]
        back.append(h)
    back.reverse()
    return F.concat([F.stack(there, axis=1), F.stack(back, axis=1)], axis=2) + len(there) + len(back)


#: name: (function, arguments for a size).  One program serves all sizes from the third on.
FREE = {
    "loss": (loss, lambda n: (floats(n, 6), labels(n))),
    "embedding": (lambda net, w: F.sum(F.tanh(net.l1(net.embed(w)))), lambda n: (labels(n, 11),)),
    "deviation": (deviation, lambda n: (floats(n, 6),)),
    "branch": (branch, lambda n: (floats(n, 6),)),
    "state": (with_state, lambda n: (floats(n, 6),)),
    "zeros of the size": (lambda net, x: F.sum(net.l1(np.zeros((x.shape[0], 6), "f") + x) ** 2), lambda n: (floats(n, 6),)),
    "concat": (lambda net, x, y: F.sum(F.concat([x, y], axis=0) ** 2) + F.sum(F.concat([x, x], axis=1)),
               lambda n: (floats(n, 6), floats(4, 6))),
    "two sizes": (lambda net, x, y: F.sum(F.concat([x, y], axis=0) ** 2), lambda n: (floats(n, 6), floats(2 * n + 1, 6))),
    "list of arrays": (lambda net, xs: sum([F.sum(net.l1(x) ** 2) for x in xs]), lambda n: ([floats(n, 6), floats(n + 1, 6)],)),
    "dict of arrays": (lambda net, d: F.sum(net.l1(d["x"]) * d["w"]), lambda n: ({"x": floats(n, 6), "w": floats(n, 6)},)),
    "extremes": (lambda net, x: F.sum(F.max(x, axis=0)) + F.sum(F.min(x, axis=1)), lambda n: (floats(n, 6),)),
    "places of extremes": (lambda net, x: F.sum(x * (F.argmin(x).array + F.argmax(x, axis=0).array)), lambda n: (floats(n, 6),)),
    "reshape": (lambda net, x: F.sum(F.transpose(F.reshape(x, (x.shape[0], 2, 3)), (1, 0, 2)) ** 2), lambda n: (floats(n, 6),)),
    "split": (lambda net, x: F.sum(F.split_axis(x, 2, axis=1)[0] ** 2), lambda n: (floats(n, 6),)),
    "pad": (lambda net, x: F.sum(F.pad(x, ((0, 0), (1, 1)), "constant") ** 2), lambda n: (floats(n, 6),)),
    "indices": (lambda net, x, i: F.sum(x[i] ** 2) + F.sum(net.embed(i)), lambda n: (floats(8, 6), labels(n, 8))),
    "where": (lambda net, x: F.sum(F.where(x.array > 0, x, x * 0.1)), lambda n: (floats(n, 6),)),
    "kl": (lambda net, x: F.sum(F.gaussian_kl_divergence(x, x * 0.1)), lambda n: (floats(n, 6),)),
    "numpy": (lambda net, x: F.sum(x) * float(np.mean(x.array)) * len(x.array), lambda n: (floats(n, 6),)),
    "einsum": (lambda net, x: F.sum(F.einsum("bi,bj->ij", x, x)), lambda n: (floats(n, 6),)),
    "results of the size": (lambda net, x: (net.l1(x), F.sum(x, axis=1)), lambda n: (floats(n, 6),)),
    "images": (image_loss, lambda n: (floats(n, 3, 8, 8), labels(n))),
    "attention over steps": (attention, lambda n: (floats(2, n, 6),)),
    "attention over a batch": (attention, lambda n: (floats(n, 4, 6),)),
    "normalize": (lambda net, x: F.sum(F.normalize(net.l1(x))), lambda n: (floats(n, 6),)),
    "mean of squares": (lambda net, x, y: F.mean_squared_error(net.l1(x), y), lambda n: (floats(n, 6), floats(n, 6))),
    "turned round": (lambda net, x: F.sum(net.l1(x[::-1])[::-1, ::-1] * F.tanh(F.flipud(x))), lambda n: (floats(n, 6),)),
    "neighbours": (lambda net, x: F.sum(x[1:] * x[:-1]) / len(x), lambda n: (floats(n + 1, 6),)),
    "lstm": (unrolled, lambda n: (floats(n, 6),)),
    "triplet": (lambda net, x, y: F.triplet(net.l1(x), y, y * x), lambda n: (floats(n, 6), floats(n, 6))),
    "soft targets": (lambda net, x, y: F.softmax_cross_entropy(net.l2(x), F.softmax(y).array), lambda n: (floats(n, 6), floats(n, 4))),
    "drawn": (lambda net, x: F.sum(net.l1(x + np.random.randn(*x.shape).astype("f")) * np.random.uniform(0, 1, (len(x), 1)).astype("f")),
              lambda n: (floats(n, 6),)),
    "resized": (lambda net, x: F.resize_images(x, (3, 5)), lambda n: (floats(n, 3, 4, 4),)),
    "unpooled": (lambda net, x: F.unpooling_2d(x, 2, cover_all=False), lambda n: (floats(n, 2, 3, 3),)),
    "deconvolution": (lambda net, x: F.deconvolution_2d(net.conv(x), net.conv.W, stride=2), lambda n: (floats(n, 3, 4, 4),)),
    "norms of samples": (lambda net, x: F.sqrt(F.batch_l2_norm_squared(x)), lambda n: (floats(n, 2, 3),)),
    "groups": (lambda net, x: F.group_normalization(x, 2, np.ones(4, "f"), np.zeros(4, "f")), lambda n: (floats(n, 4, 3),)),
    "without a lowering": (lambda net, x: chainer.distributions.Bernoulli(logit=net.l1(x)).log_prob(np.round(abs(x.array))),
                           lambda n: (floats(n, 6),)),
    "images of any size": (lambda net, x: F.sum(F.average_pooling_2d(F.relu(net.conv(x)), 2) ** 2), lambda n: (floats(2, 3, 2 * n, n + 1),)),
    "larger images": (lambda net, x: F.average(F.relu(F.convolution_2d(net.conv(x), np.ones((2, 4, 5, 5), "f"))), axis=(2, 3)),
                      lambda n: (floats(2, 3, n + 6, 2 * n + 5),)),
    "images back": (lambda net, x: F.unpooling_2d(F.deconvolution_2d(net.conv(x), net.conv.W, pad=1), 2, cover_all=False),
                    lambda n: (floats(2, 3, n, n + 2),)),
    "halved and doubled": (lambda net, x: F.concat([net.conv(x), F.unpooling_2d(F.max_pooling_2d(net.conv(x), 2), 2, cover_all=False)]),
                           lambda n: (floats(2, 3, 4 * n, 2 * n),)),
    "halved and resized": (resized("bilinear", True), lambda n: (floats(2, 3, n + 1, 2 * n),)),
    "halved and resized, other corners": (resized("bilinear", False), lambda n: (floats(2, 3, n, n + 3),)),
    "halved and resized, nearest": (resized("nearest", True), lambda n: (floats(2, 3, n + 3, 2 * n + 1),)),
    "average of all places": (lambda net, x: net.fc2(F.average_pooling_2d(F.relu(net.conv(x)), x.shape[2:])),
                              lambda n: (floats(2, 3, n + 1, 2 * n),)),
    "largest of all places": (lambda net, x: (lambda h: net.fc2(F.max_pooling_2d(h, (h.shape[2], 1))))(F.relu(F.convolution_2d(
        x[:, None], np.ones((4, 1, 3, 6), "f")))), lambda n: (np.round(floats(2, n + 2, 6), 1),)),
    "largest and average of columns and rows": (lambda net, x: (lambda h: F.sum(F.max_pooling_2d(h, (h.shape[2], 1)), axis=3)[:, :, 0] *
        F.max(F.average_pooling_2d(h, (1, h.shape[3])), axis=2)[:, :, 0])(net.conv(x)), lambda n: (floats(2, 3, n + 1, n + 3),)),
    "frames": (lambda net, x: net.l1(x.array[:, np.arange(6) + 2 * np.arange((x.shape[1] - 6) // 2 + 1)[:, None]], n_batch_axes=2),
               lambda n: (floats(2, n + 6),)),
    "neighbours side by side": (lambda net, x: net.l1(F.concat([x[:, i:x.shape[1] - 2 + i, :2] for i in range(3)], axis=2),
                                                      n_batch_axes=2), lambda n: (floats(2, n + 2, 6),)),
    "padded to a multiple": (lambda net, x: F.concat([F.unpooling_2d(F.max_pooling_2d(h, 2), 2, cover_all=False) * h for h in [F.pad(
        net.conv(x), ((0, 0), (0, 0), (0, -x.shape[2] % 4), (0, -x.shape[3] % 4)), "constant")]])[:, :, :x.shape[2]],
        lambda n: (floats(2, 3, n + 1, n + 3),)),
    "halves": (lambda net, x: (lambda h: h[:, :, h.shape[2] // 2:, ::2] * 2)(F.tanh(x)[:, :, x.shape[2] // 2:]), lambda n: (floats(2, 1, n + 2, n + 1),)),
    "halves of arrays": (lambda net, x: F.sum(net.l1(x)) * (x.array[len(x) // 2:] * 2).sum(), lambda n: (floats(n, 6),)),
    "rows of a table": (lambda net, x: net.l1(F.reshape(x + TABLE[None, :x.shape[1]], (-1, 6))), lambda n: (floats(2, n, 6),)),
    "regions": (lambda net, x: F.sum(F.roi_average_align_2d(net.conv(x), np.array([[0, 1, 3, 5]], "f"), np.zeros(1, "i"), 2, 0.5, 2)) +
                F.sum(F.roi_pooling_2d(net.conv(x), np.array([[1, 0, 1, 5, 3]], "f"), 2, 2, 0.5)),
                lambda n: (floats(2, 3, n + 2, n + 4),)),
    "cropped": (lambda net, x: (lambda h: F.concat([h, x[:, :, (x.shape[2] - h.shape[2]) // 2:-1, 1:1 + h.shape[3]]]))(
        F.max_pooling_2d(x, 3, stride=1)), lambda n: (floats(2, 3, n + 3, n + 4),)),
    "over steps": (over_steps, lambda n: (floats(n, 2, 6),)), "over rows": (over_rows, lambda n: (floats(n, 2, 6),)),
    "over arrays": (over_arrays, lambda n: (floats(n, 2, 6),)), "stacked states": (stacked_states, lambda n: (floats(n, 2, 6),)),
    "next steps": (next_steps, lambda n: (floats(n, 2, 6),)), "over columns": (over_columns, lambda n: (floats(n, n + 1, 6),)),
    "iterators": (with_iterators, lambda n: (floats(n, 2, 6),)), "backwards": (backwards, lambda n: (floats(n, 2, 6),)),
    "in place": (in_place, lambda n: (floats(n, 6),)), "halving": (halving, lambda n: (floats(n, 6),)),
    "largest": (largest, lambda n: (floats(n, 6),)), "until": (until, lambda n: (floats(n, 6),)), "pairs": (pairs, lambda n: (floats(n, 6),)),
    "moving": (moving, lambda n: (floats(n, 6),)),
    "list of parts": (lambda net, x: sum([F.sum(net.l1(row[None])) for row in F.separate(x, axis=0)]), lambda n: (floats(n, 6),)),
    "last of steps": (last_of_steps, lambda n: (labels(n, 8)[None],)),
    "both directions": (both_directions, lambda n: (floats(3, n, 6),)),
    "windows": (lambda net, x: F.sum(F.stack([net.l1(F.reshape(x[:, i:i + 3, :2], (2, -1))) for i in range(0, x.shape[1] - 2, 2)])),
                lambda n: (floats(2, n + 2, 6),)),
    "two axes": (lambda net, x: F.sum(F.softmax(x, axis=1) ** 2), lambda n: (floats(n, n + 2),)),
}

def used_twice(net, x):
    pairs, total = enumerate(x), 0
    for i, row in pairs:
        total = total + F.sum(row) * i
    for i, row in pairs:
        total = total + 100.0
    return total


#: The same where the number is needed: a program for each size, with the same results.
FIXED = {
    "iterator that is used twice": (used_twice, lambda n: (floats(n, 6),)),
    "text": (lambda net, x: F.sum(x) * len(f"{x.shape[0]}"), lambda n: (floats(n, 6),)),
}


def run(function, net, args):
    """The results, the gradients of a sum of them, and the state of the net."""
    inputs = []

    def variables(item):
        if isinstance(item, (list, tuple)):
            return type(item)(map(variables, item))
        if isinstance(item, dict):
            return {key: variables(value) for key, value in item.items()}
        if item.dtype.kind != "f":
            return item
        inputs.append(chainer.Variable(item.copy()))
        return inputs[-1]

    net.cleargrads()
    np.random.seed(len(inputs))
    results = function(net, *variables(args))
    flat = results if isinstance(results, tuple) else (results,)
    sum([F.sum(y * y) for y in flat]).backward()
    grads = [v.grad for v in inputs] + [p.grad for _, p in sorted(net.namedparams())]
    moved = [net.batch_norm.avg_mean.copy(), net.batch_norm.avg_var.copy(), np.random.rand(1)]
    return [y.array for y in flat] + grads + moved, getattr(net, "seen", None), getattr(net, "total", None)


def compare(static, function, make_args, sizes=SIZES):
    net = Net()
    other = copy.deepcopy(net)
    for n in sizes:
        args = make_args(n)
        got, expected = run(static, net, args), run(function, other, args)
        assert got[1:] == expected[1:]
        for mine, eager in zip(got[0], expected[0]):
            assert (mine is None) == (eager is None)
            if eager is not None:
                testing.assert_allclose(mine, eager, rtol=1e-4, atol=1e-5 * max(1, np.abs(eager).max()))
    return static.cache_info()
