"""Arrays that are written while something else holds them: Variables, objects, the host, gradients."""
import copy

import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from written_arrays import Box, Holder, Scaled, floats, mixed

from dy2static import not_to_static, to_static
from dy2static.library_facts.chainer import NODES
from dy2static.library_facts.table import named


def test_many_writes_of_one_buffer():
    def f(x):
        m = np.zeros((20, 3), "f")
        for i in range(20):
            m[i] = x.array[:3] * i
        return F.sum(x) * m
    against_eager.check(lambda compile: compile(f), mixed(), compiled=True)


def steps_of_sgd(compile):
    w = chainer.Parameter(floats(4, seed=3))

    def f(x):
        losses = []
        for _ in range(3):
            loss = F.sum(F.square(w * x.array - 1))
            w.cleargrad()
            loss.backward()
            w.array -= 0.1 * w.grad
            losses.append(float(loss.array))
        return losses
    return compile(f), w


def sgd_until(compile):
    w = chainer.Parameter(np.ones(4, "f"))

    def f(x):
        value, count = 1e9, 0
        while value > 0.2 and count < 50:
            loss = F.sum(F.square(w * (abs(x.array) + 0.5) - 1)) + 0.1 * F.sum(w * w)
            w.cleargrad()
            loss.backward()
            w.array -= 0.1 * w.grad
            value = float(loss.array)
            count += 1
        w.cleargrad()
        return value, count
    return compile(f), w


def backward_after_the_write(compile):
    w = chainer.Parameter(floats(4, seed=3))

    def f(x):
        loss = F.sum(F.square(w))
        w.array *= 3
        w.cleargrad()
        loss.backward()
        return x * 1
    return compile(f), w


def backward_of_a_join(compile):
    w = chainer.Parameter(floats(4, seed=3))

    def f(x):
        if x.array.sum() > 0:
            loss = F.sum(F.square(w))
        else:
            loss = F.sum(w * w * w)
        w.array *= 3
        w.cleargrad()
        loss.backward()
        return x.array * 1
    return compile(f), w


def mask_written_after(compile):
    def f(x):
        m = np.ones(4, "f")
        y = x * m
        m[0] = 5
        return y, m
    return compile(f), None


def without_backprop(compile):
    link = Scaled()

    def f(x):
        with chainer.no_backprop_mode():
            h = F.relu(x * link.w)
            link.w.array[0] = 3
            h.array[1] = 7
            r = F.reshape(h, (2, 2))
            return (r * 2).array, h.array
    return compile(f), link


def chosen_one_by_one(compile):
    """A pointer network that decodes: what has been chosen is masked."""
    def f(x):
        mask, order = np.zeros(4, bool), []
        with chainer.no_backprop_mode():
            for _ in range(3):
                y = F.where(mask, np.full(4, -1e9, "f"), x)
                place = y.array.argmax()
                mask[place] = True
                order.append(place)
            return y.array, mask, np.stack(order)
    return compile(f), None


def view_by_chainer(compile):
    def f(x):
        with chainer.no_backprop_mode():
            r = F.reshape(x, (2, 2))
            x.array[0] = 3
            return r.array + 1
    return compile(f), None


class Keeper:
    def __init__(self):
        self.kept = []

    def keep(self, item):
        self.kept.append(item)

    def double(self, item):
        item *= 2


def kept_by_the_host(compile):
    keeper = Keeper()
    keep = not_to_static(lambda item: keeper.keep(item))

    def f(x):
        m = np.zeros(4, "f")
        m[0] = 1
        keep(m)
        m[1] = 2
        return x * 1
    return compile(f), keeper


def changed_by_the_host(compile):
    box = Box(a=floats(4))
    double = not_to_static(lambda item: Keeper().double(item))

    def f(x):
        a = box.a
        a += 1
        double(a)
        return x.array + a
    return compile(f), box


def printed_variable(compile):
    def f(x):
        x.array[...] = 2
        print(x, x.array)
        x.array += 1
        return x.array.sum()
    return compile(f), None


def reported(compile):
    def f(x):
        m = np.zeros(4, "f")
        chainer.report({"m": m})
        m[0] = 1
        return x * 1
    return compile(f), None


def pieces(compile):
    def f(x):
        m = np.zeros(4, "f")
        a, b = np.split(m, 2)
        m += 1
        b[0] = 5
        return a, b, m, x * 1
    return compile(f), None


def condition(compile):
    def f(x):
        c = np.zeros(4, bool)
        c[1] = True
        y = F.where(c, x, x * 2)
        return y
    return compile(f), None


def stored_then_written(compile):
    box = Box(a=None)

    def f(x):
        m = np.zeros(4, "f")
        box.a = m
        assert x.array[0] < 10
        m[1] = 2
        return x * 1
    return compile(f), box


@pytest.mark.parametrize("make, compiled", [
    (steps_of_sgd, True), (sgd_until, None), (backward_after_the_write, None), (backward_of_a_join, None),
    (mask_written_after, None), (without_backprop, True), (chosen_one_by_one, True), (view_by_chainer, None), (kept_by_the_host, None),
    (changed_by_the_host, None), (printed_variable, True), (reported, None), (pieces, None), (condition, True),
    (stored_then_written, None)], ids=lambda x: getattr(x, "__name__", str(x)))
def test_who_else_holds_the_array(make, compiled):
    against_eager.check(make, mixed(), compiled=compiled)


def picked_by_turns(compile):
    """A pointer network's mask: additions do not read it in their backward, so it may be written."""
    def f(x):
        mask, loss = np.zeros(x.shape, "f"), 0
        for _ in range(2):
            scores = F.tanh(x) + mask
            loss += F.softmax_cross_entropy(scores - F.concat([mask[:, 1:], mask[:, :1]]), np.zeros(len(x), "i"))
            mask[np.arange(len(x)), scores.array.argmax(axis=1)] = -9
        return loss
    return compile(f), None


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_what_no_backward_reads_may_be_written(backend):
    against_eager.check(picked_by_turns, [lambda k=k: (against_eager.variable(2, 3, seed=k),) for k in range(2)], compiled=True,
                        backend=backend)


def test_an_array_of_the_callers_that_is_added_may_be_kept_by_reference():
    def make(compile):
        holder = Holder()
        holder.last = np.zeros((2, 3), "f")

        def f(x):
            y = F.exp(x + holder.last)
            holder.last[...] = 1
            return y
        return compile(f), [holder]
    against_eager.check(make, [lambda: (against_eager.variable(2, 3),)] * 2)


def deep(x, w):
    for _ in range(3):
        x = F.tanh(F.matmul(x, w) + x)
    return x


def filled_variable(compile, w):
    def f(x):
        z, k = chainer.Variable(np.zeros((4, 4), "f")), chainer.Variable(np.ones((4, 4), "f"))
        z.array[:, 0] = x.array
        z.array += x.array
        k.array[1] = 3
        return deep(z, w) * x + k, z, k
    return f


def filled_under_another_name(compile, w):
    """The Variable holds the array itself: gradients with respect to it are those of what was written."""
    def f(x):
        a = np.zeros((4, 4), "f")
        z = chainer.Variable(a)
        a += x.array * 2
        w.cleargrad()
        F.sum(deep(z, w) * x).backward()
        return z.grad, w.grad, z, a, z.array is a
    return f


def detached(compile, w):
    """What a function gave has a gradient of its own."""
    def f(x):
        h = F.tanh(x * w)
        d, e = chainer.Variable(h.array), chainer.Variable(h.array * 2)
        e2 = chainer.Variable(e.array)
        w.cleargrad()
        F.sum(h * d * e * e2 ** 2).backward()
        return d.grad, e.grad, e2.grad, w.grad, d.array is h.array
    return f


def one_array_for_two_parameters(compile, w):
    v, u = chainer.Parameter(floats(4)), chainer.Parameter(floats(4))

    def f(x):
        a = x.array * 2
        z = chainer.Variable(a)
        z.array[0] = 3
        v.array = u.array = a
        q = chainer.Variable(a)
        for p in (v, u, w):
            p.cleargrad()
        F.sum(v * 2 * z + u ** 2 * x * q + deep(z * w, w)).backward()
        return [p.grad for p in (v, u, w, z, q)]
    return f


def filled_in_branches(compile, w):
    def f(x):
        z = chainer.Variable(np.zeros((4, 4), "f"))
        if x.array.sum() > 0:
            z.array[0] = x.array
        for i in range(2):
            if x.array[i] > 0:
                z.array[i] += 1
        return deep(z, w), z
    return f


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("make", [filled_variable, filled_under_another_name, detached, one_array_for_two_parameters, filled_in_branches],
                         ids=lambda make: make.__name__)
def test_variables_that_the_call_makes_hold_their_array(make, backend):
    def program(compile):
        w = chainer.Parameter(floats(4, 4, seed=3))
        return compile(make(compile, w)), [w]
    against_eager.check(program, mixed(), compiled=True, backend=backend)


def written_after_it_was_read(compile):
    w = chainer.Parameter(floats(4, 4, seed=3))

    def f(x):
        z = chainer.Variable(np.ones((4, 4), "f"))
        y = deep(z, w) * x
        z.array[0] = 5
        return y + deep(z, w)
    return compile(f), [w]


def copied_parameter_is_written(compile):
    model = chainer.Sequential(chainer.links.Linear(4, 4))

    def f(x):
        copied = copy.deepcopy(model)
        copied[0].b.array[...] = 1
        return deep(copied(x[None]), model[0].W) * x
    return compile(f), [model]


def written_after_it_was_stored(compile):
    box, w = Box(z=None), chainer.Parameter(floats(4, 4, seed=3))

    def f(x):
        box.z = z = chainer.Variable(np.zeros((4, 4), "f"))
        if x.array[0] < -10:
            raise ValueError
        z.array[0] = 3
        return deep(z, w) * x
    return compile(f), [w, box]


@pytest.mark.parametrize("make", [written_after_it_was_read, written_after_it_was_stored, copied_parameter_is_written], ids=lambda make: make.__name__)
def test_other_writes_into_what_a_variable_holds_are_cuts(make):
    function = against_eager.check(make, mixed(), backend="numpy")
    assert function.stats()["cuts"] and function.stats()["fallbacks"] == 0 and function.stats()["programs"]


def checked_after_the_update(compile):
    w, v = (chainer.Parameter(floats(4, seed=seed)) for seed in (3, 4))

    def f(x):
        w.array = w.array - 0.1 * x.array[:4]
        if x.array[0] > 10:
            raise ValueError("it grows")
        v.array = w.array
        if np.isnan(w.array).any():
            raise FloatingPointError("it has no value")
        return F.sum(x)
    return compile(f), [w, v]


def test_an_array_given_before_something_that_may_raise_stays():
    """The program writes it back before it raises, and at the end where it does not."""
    calls = [lambda: floats(4, seed=1), lambda: np.full(4, np.nan, "f"), lambda: floats(4, seed=2), lambda: floats(4, seed=2) + 20]
    against_eager.check(checked_after_the_update, [lambda make=make: (chainer.Variable(make()),) for make in calls], backend="numpy")


def added(box, w, x):
    scores = F.concat([x * w + box.a, box.a[:1]], axis=0)[:2] - box.b
    box.a[0] = x.array[0]
    box.b += 1
    return F.exp(scores) * scores


def stacked(box, w, x):
    y = F.stack([x * w, box.a, F.where(box.a > 0, x, x * 2)])
    box.a *= 0.5
    box.a += x.array
    return F.sum(F.square(y - box.a), axis=0)


def under_a_decision(box, w, x):
    box.a *= 2
    y = F.relu(x * w + box.a) if x.array.sum() > 0 else x * w - box.a
    box.a[...] = 1
    return F.tanh(y) * y


def with_gradients_inside(box, w, x):
    w.cleargrad()
    y = F.vstack([F.tanh(x * w), box.a])
    box.a[1] = x.array[0]
    F.sum(y * y).backward()
    box.a -= w.array
    return F.sum(w * x - box.a)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("step", [added, stacked, under_a_decision, with_gradients_inside], ids=lambda step: step.__name__)
def test_arrays_of_the_callers_that_no_backward_reads_may_be_written(step, backend):
    def make(compile):
        box, w = Box(a=floats(2, 3, seed=1), b=floats(2, 3, seed=2)), chainer.Parameter(floats(2, 3, seed=3))
        return compile(lambda x: step(box, w, x)), [box, w]
    function = against_eager.check(make, [lambda k=k: (against_eager.variable(2, 3, seed=k),) for k in range(4)], compiled=True,
                                   backend=backend)
    assert function.stats()["cuts"] == 0 and function.stats()["captures"] == 1


def test_index_arrays_of_the_callers_are_read_by_a_backward():
    def make(compile):
        box = Box(a=np.array([2, 0]))

        def f(x):
            y = x[:, box.a]
            box.a[...] = 1
            return y
        return compile(f), [box]
    against_eager.check(make, [lambda: (against_eager.variable(2, 3),)] * 2)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("options", [{}, {"reduce": "no"}, {"ignore_label": 1}, {"normalize": False, "cache_score": False},
                                     {"class_weight": np.array([1, 2, 3], "f")}], ids=str)
def test_labels_are_read_again_by_a_backward(options, backend):
    grads = []
    for compile in (lambda f: f, to_static(backend=backend)):
        x, t = chainer.Parameter(floats(4, 3)), np.array([0, 1, 2, -1], "i")
        loss = compile(lambda x, t: F.sum(F.softmax_cross_entropy(x, t, **options)))(x, t)
        t[...] = [2, -1, 0, 1]
        loss.backward()
        grads.append(x.grad)
    np.testing.assert_allclose(*grads, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_ids_are_read_again_by_a_backward(backend):
    grads = []
    for compile in (lambda f: f, to_static(backend=backend)):
        W, ids = chainer.Parameter(floats(4, 3)), np.array([0, 1, -1, 3], "i")
        y = compile(lambda W, ids: F.sum(F.embed_id(ids, W, ignore_label=-1) ** 2))(W, ids)
        ids[...] = [2, -1, 1, 0]
        y.backward()
        grads.append(W.grad)
    np.testing.assert_allclose(*grads, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_operands_of_losses_are_read_again_by_a_backward(backend):
    def f(x, t):
        noise = F.gaussian(t, x, eps=np.ones(3, "f"))
        return F.mean_squared_error(x, t) + F.sum(F.squared_error(x, t)) + F.sum(F.linear_interpolate(t, x, t) + noise)
    grads = []
    for compile in (lambda f: f, to_static(backend=backend)):
        x, t = chainer.Parameter(floats(3)), chainer.Parameter(floats(3, seed=1))
        loss = compile(f)(x, t)
        t.array[...] = [2, -1, 0.5]
        loss.backward()
        grads.append((x.grad, t.grad))
    np.testing.assert_allclose(*grads, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("copy_of", [lambda w: -F.transpose(-F.transpose(w)), lambda w: w * 1, lambda w: w / 1, lambda w: F.pad(w, 0, "constant"),
                                     lambda w: F.transpose(F.transpose(w) * 1)],
                         ids=["negative", "times_one", "over_one", "padded", "turned"])
def test_a_copy_of_what_is_written_before_its_backward_stays_a_copy(copy_of):
    grads = []
    for compile in (lambda f: f, to_static):
        w, x = chainer.Parameter(floats(2, 3)), chainer.Variable(floats(2, 3, seed=1))
        y = compile(lambda w, x: copy_of(w) * x)(w, x)
        w.array[...] = 7
        F.sum(y).backward()
        grads.append((w.grad, x.grad))
    np.testing.assert_array_equal(*grads)


def image(w):
    return F.reshape(w, (1, 4, 2, 2))


#: By class, calls of functions whose backward is said not to read their inputs.
FORGETTING = {
    "Add": lambda w: w + w, "AddConstant": lambda w: w + 1, "BroadcastTo": lambda w: F.broadcast_to(w, (2, 4, 4)),
    "Cast": lambda w: F.cast(w, "d"), "Concat": lambda w: F.concat([w, w]), "Cumsum": lambda w: F.cumsum(w, axis=1),
    "Depth2Space": lambda w: F.depth2space(image(w), 2), "Dropout": lambda w: F.dropout(w, 0.5),
    "Dstack": lambda w: F.dstack([w, w]), "Exp": F.exp, "ExpandDims": lambda w: F.expand_dims(w, 0), "Expm1": F.expm1,
    "Flip": lambda w: F.flip(w, 0), "FlipLR": F.fliplr, "FlipUD": F.flipud, "GetItem": lambda w: w[np.array([0, 2])],
    "Hstack": lambda w: F.hstack([w, w]), "Im2Col": lambda w: F.im2col(image(w), 2), "LogSoftmax": F.log_softmax,
    "Moveaxis": lambda w: F.moveaxis(w, 0, 1), "MultiAdd": lambda w: F.add(w, w, w), "Neg": lambda w: -w,
    "Pad": lambda w: F.pad(w, 1, "constant"), "ReLU": F.relu, "Repeat": lambda w: F.repeat(w, 2, axis=0),
    "Reshape": lambda w: F.reshape(w, (2, 8)), "Rollaxis": lambda w: F.rollaxis(w, 1),
    "Separate": lambda w: sum(F.separate(w)), "Softmax": F.softmax, "Space2Depth": lambda w: F.space2depth(image(w), 2),
    "SplitAxis": lambda w: sum(F.split_axis(w, 2, 0)), "Sqrt": F.sqrt, "Squeeze": lambda w: F.squeeze(w[None], 0),
    "Stack": lambda w: F.stack([w, w]), "Sub": lambda w: w - w, "SubFromConstant": lambda w: 1 - w,
    "Sum": lambda w: F.sum(w, axis=0), "SumTo": lambda w: F.sum_to(w, (1, 4)), "Swapaxes": lambda w: F.swapaxes(w, 0, 1),
    "Tile": lambda w: F.tile(w, (2, 1)), "Transpose": F.transpose, "Vstack": lambda w: F.vstack([w, w]),
    "Where": lambda w: F.where(np.eye(4, dtype=bool), w, w),
}


def test_all_functions_that_forget_their_inputs_are_tried():
    assert FORGETTING.keys() == named("forgets", NODES)


@pytest.mark.parametrize("name", FORGETTING)
def test_a_backward_of_functions_that_forget_their_inputs_reads_none_of_them(name):
    grads = []
    for compile, written in ((lambda f: f, False), (lambda f: f, True), (to_static, True)):
        np.random.seed(0)
        w = chainer.Parameter(np.arange(1, 17, dtype="f").reshape(4, 4) / 10)
        y = compile(FORGETTING[name])(w)
        w.array[...] = -5 if written else w.array
        y.grad = np.arange(y.size, dtype=y.dtype).reshape(y.shape)
        y.backward()
        grads.append(w.grad)
    np.testing.assert_array_equal(grads[0], grads[1])
    np.testing.assert_allclose(grads[2], grads[1], rtol=1e-5, atol=1e-6)
