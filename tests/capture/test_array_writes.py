"""Writes into arrays: what is seen of a call, memory that is shared included, is what the eager call shows."""
import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable
from chainer import Variable

from dy2static import not_to_static, to_static


class Box:
    """A plain object with state."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def floats(*shape, seed=0):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype("f")


def mixed(*more):
    """Calls with Variables of positive, negative and mixed contents."""
    return [lambda low=low, high=high, k=k: (variable(4, seed=k, low=low, high=high), *[m() for m in more])
            for k, (low, high) in enumerate(((0.1, 1), (-1, -0.1), (-1, 1), (-0.2, 1.2)))]


# --- arrays made in the function ----------------------------------------------------------------------------------------


def items(x):
    m = np.zeros(x.shape, "f")
    m[0] = 1.0
    m[-1] += 0.5
    m[1:3] = x.array[:2]
    return x * m, m


def masks(x):
    m = x.array * 2
    m[m > 0] = 0.25
    m[[0, 2]] -= 1
    return x * m


def rows_of_a_mask(x):
    rows = np.outer(x.array, [1, -2, 3]).astype("f")
    mask = x.array > 0.1
    best = np.full(4, -1)
    best[mask] = rows[mask].argmax(axis=1)
    kept = rows[mask]
    rows[mask, 1] = rows[mask].sum(axis=1)
    rows[mask] *= 3
    return x * best.astype("f"), rows, kept


def rows_of_a_changed_mask(x):
    rows = np.outer(x.array, [1, -2, 3]).astype("f")
    mask = x.array > 0.1
    kept = rows[mask] * 2
    mask[:2] = [True, False]
    rows[mask] = kept
    return rows


def parts_of_sizes_that_the_run_knows(x):
    places, m, p = np.nonzero(x.array > 0.1)[0], np.zeros((2, 6), "f"), 0
    m[1, :len(places)] = x.array[places]
    for k in range(2):
        part = x.array[x.array > k * 0.5]
        m[0, p:p + len(part) // 2] = part[:len(part) // 2]
        p += len(part) // 2
    y0, y1 = np.clip([p - 1, p + 1], 0, 4)
    m[:, y0:y1] = m[::-1, y0:y1] * 2
    return F.tanh(m), p


def parts_that_do_not_fit(x):
    n, m = int((x.array > 0).sum()), np.zeros(4, "f")
    m[:n] = x.array[:n - (n > 3)]
    return F.tanh(m)


def operators(x):
    m = x.array.copy()
    m += 1
    m -= x.array
    m *= 3
    m /= 2
    m **= 2
    k = np.arange(4)
    k //= 2
    k |= 4
    k <<= 1
    return x + m, m, k


def functions(x):
    m, k = np.empty((2, 4), "f"), np.empty(4, "f")
    m.fill(2)
    np.copyto(m[0], x.array)
    np.add(m, 1, out=m)
    np.multiply(x.array, x.array, k)
    y = m.sum(axis=0, out=k) if False else np.sum(m, axis=0, out=k)
    np.add.at(k, [0, 0, 1], 1)
    k.sort()
    return x * m[1], k, y is k, m


def views(x):
    m = np.zeros((2, 2), "f")
    t, flat, row = m.T, m.reshape(-1), m[1]
    row[0] = 5
    t[0, 1] += 1
    flat[:2] = x.array[:2]
    np.asarray(m)[1, 1] = 3
    m.ravel()[0] = 9
    return x * flat, m, t, flat, row


def view_of_a_view(x):
    m = np.zeros((3, 4), "f")
    v = m[1:][:, ::2]
    w = v[0]
    m[:] = x.array
    w += 10
    v[1, 1] = -1
    return m, v, w


def overlapping(x):
    m = x.array.copy()
    m[1:] += m[:-1]
    m[::-1] = m
    return x * m


def copies_are_not_views(x):
    m = np.zeros((2, 2), "f")
    a, b, c, d = m + 0, m.copy(), m.flatten(), m[[0, 1]]
    m += 1
    return a, b, c, d, m, x * m.ravel()


def aliases(x):
    a = np.zeros(4, "f")
    b = a
    b += x.array
    box = [a, b]
    box[0][1] = 3
    return x * a, box


def scalars(x):
    s = x.array.sum()
    r = s
    s += 1
    n = 3
    n += 1
    return x * s, r, n


def number_as_index(x):
    m = np.zeros((4, 4), "f")
    i = int(x.array.argmax())
    m[i] = 1
    m[:, i] += 2
    return x * m[i]


def kept_on_an_object(compile):
    box = Box(log=None)

    def f(x):
        m = np.zeros(4, "f")
        box.log = m
        m[0] = 1
        box.log[1] = 2
        return x * m
    return compile(f), box


def reshape_of_unknown(x):
    m = (x.array.reshape(2, 2).T + 1)
    m.reshape(-1)[0] = 5                                # a view or a copy, as the strides are
    return m, x * 2


def out_of_bounds(x):
    m = np.zeros(4, "f")
    m[int(x.array[0] * 100) * 0 + (9 if False else 3)] = 1
    return x * m


def wrong_cast(x):
    k = np.arange(4)
    k += x.array
    return k


def read_only(x):
    m = np.broadcast_to(x.array, (2, 4))
    m[0] = 1
    return m


LOCAL = [(f, True) for f in (items, masks, rows_of_a_mask, parts_of_sizes_that_the_run_knows, parts_that_do_not_fit, operators, functions, views, view_of_a_view, overlapping, copies_are_not_views,
                             aliases, scalars, number_as_index, out_of_bounds)]
LOCAL += [(rows_of_a_changed_mask, None), (wrong_cast, None), (read_only, None), (reshape_of_unknown, None)]


@pytest.mark.parametrize("function, compiled", LOCAL, ids=lambda x: getattr(x, "__name__", str(x)))
def test_arrays_made_inside(function, compiled):
    against_eager.check(lambda compile: compile(function), mixed(), compiled=compiled, strict=compiled is True)


def test_array_on_an_object():
    against_eager.check(kept_on_an_object, mixed(), compiled=True)


# --- under decisions ------------------------------------------------------------------------------------------------------


def under_if(x):
    m = np.zeros(4, "f")
    v = m[1:]
    for i in range(4):
        if x.array[i] > 0:
            m[i] = 1.0
        else:
            v[i - 1] -= 0.5
    return x * m, m, v


def view_of_one_branch(x):
    m = np.zeros(4, "f")
    if x.array.sum() > 0:
        m[0] = 1
        k = m[:2] + 1
    else:
        k = m[2:] + 2
    m[1] = 7
    return m, k, x * 2


def either_array(x):
    a, b = np.zeros(4, "f"), np.ones(4, "f")
    c = a if x.array.sum() > 0 else b
    c[0] = 5
    return a, b, c


def read_either(x):
    a, b = np.zeros(4, "f"), np.ones(4, "f")
    a[1] = 2
    if x.array.sum() > 0:
        a[2] = 4
        c = a
    else:
        c = b
    return x * c


def under_while(x):
    m = np.zeros(4, "f")
    v = m[::2]
    t = 0
    while m.sum() < 6:
        m[t] += 1 + abs(x.array[0])
        v *= 1.5
        t = (t + 1) % 4
    return x * m, m, v, t


def rebound_and_written(x):
    s = np.zeros((4, 3), "i")
    t, done = 0, np.zeros(4, bool)
    while t < 3:
        s = s[::-1].copy()
        s[:, t] = (x.array * 10).astype("i")
        done = done | (s[:, t] > 4)
        t += 1
        if done.all():
            break
    return s, t


def written_before_rebound(x):
    b = np.ones(4, "f")
    a = b
    while b.sum() < 20 + x.array[0]:
        b += 1
        b = b * 2
    return a, b


def nested(x):
    m = np.zeros((2, 4), "f")
    k = 0
    while k < 3 + int(x.array[0] > 0):
        if x.array[1] > 0:
            m[0] += 1
            if x.array[2] > 0:
                m[1, k] = 2
        k += 1
    return x * m[0], m


@pytest.mark.parametrize("function, compiled", [
    (under_if, True), (view_of_one_branch, True), (either_array, None), (read_either, True), (under_while, True),
    (rebound_and_written, True), (written_before_rebound, None), (nested, True)],
    ids=lambda x: getattr(x, "__name__", str(x)))
def test_decisions(function, compiled):
    against_eager.check(lambda compile: compile(function), mixed(), compiled=compiled)


# --- arrays of the user's ---------------------------------------------------------------------------------------------------


def augmented(x, a):
    a += 1
    a[0] = x.array.sum()
    return x * a


def returned(x, a):
    a *= 2
    return a, x + a


def view_returned(x, a):
    v = a[1:]
    a *= 2
    return v, x


def raveled(x, a):
    a *= 2
    return a.ravel(), x


def view_written(x, a):
    v = a[1:]
    w = v[::2]
    w += x.array[:2]
    return x * a, w.sum()


def of_a_variable(x, a):
    x.array[...] = a
    x.array += 1
    return x.array.sum()


def variable_made_of_it(x, a):
    a *= 2.0
    return Variable(a) * x


def differentiated_after(x, a):
    x.array *= 2
    return F.tanh(x) * a


def differentiated_before(x, a):
    y = F.tanh(x)
    x.array *= 2
    return y * a


def operand_before(x, a):
    y = x * a
    a += 1
    return y


def fails_later(x, a):
    a += 1
    a[1] = 5
    if x.array.sum() > 0:
        raise ValueError("too large")
    a += 100
    return x * 2


def in_a_loop(x, a):
    t = 0
    while a.sum() < 20:
        a += abs(x.array) + 1
        t += 1
    return t, a.max()


def printed(x, a):
    a += 1
    print("now", a.sum(), a)
    a += 1
    print(a)
    return x


def asked(x, a):
    assert a[0] < 100
    a += 1
    assert a[0] < 2
    a += 1
    return x + 1


def augmented_number(x, a):
    a += 1
    return x * a, a


def view_of_a_number(x, a):
    a[...] = 5
    return x * a, a[None]


def number_assigned(x, a):
    a[...] = a * 2
    return x * a, a, a.copy()


@pytest.mark.parametrize("function, compiled", [
    (augmented, True), (returned, True), (view_returned, None), (raveled, None), (view_written, True), (of_a_variable, True),
    (variable_made_of_it, True), (differentiated_after, None), (differentiated_before, None), (operand_before, None),
    (fails_later, True), (in_a_loop, None), (printed, True), (asked, True)],
    ids=lambda x: getattr(x, "__name__", str(x)))
def test_arrays_of_the_user(function, compiled):
    against_eager.check(lambda compile: compile(function), mixed(lambda: floats(4)), compiled=compiled)
    against_eager.check(lambda compile: compile(function), mixed(lambda: floats(8)[::2]))


@pytest.mark.parametrize("function", [augmented_number, view_of_a_number, number_assigned], ids=lambda x: x.__name__)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_arrays_without_axes(function, backend):
    calls = [lambda k=k: (variable(4, seed=k), np.array(k, "f")) for k in range(2)]
    against_eager.check(lambda compile: compile(function), calls, backend=backend)


def attribute(compile):
    box = Box(buffer=floats(4), count=0)

    def f(x):
        box.buffer += x.array
        box.count += 1
        box.buffer[0] = 0
        return x * 2
    return compile(f), box


class Scaled(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.w = chainer.Parameter(floats(4, seed=3))

    def forward(self, x):
        self.w.array[...] = np.clip(self.w.array, -0.5, 0.5)
        with chainer.no_backprop_mode():
            return F.sum(x * self.w)


def a_link(compile):
    link = Scaled()
    return compile(link), link


def loss_then_step(compile):
    w = chainer.Parameter(floats(4, seed=3))

    def f(x):
        loss = F.sum(F.square(w * x.array - 1))
        w.cleargrad()
        loss.backward()
        w.array -= 0.1 * w.grad
        return float(loss.array)
    return compile(f), w


@pytest.mark.parametrize("make, compiled", [(attribute, True), (a_link, None), (loss_then_step, True)],
                         ids=lambda x: getattr(x, "__name__", str(x)))
def test_state(make, compiled):
    against_eager.check(make, mixed(), compiled=compiled)


def two(u, v):
    u *= 2.0
    v[1:] += 1.0
    return Variable(u) * v


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)], ids=str)
def test_overlapping_arguments(order):
    def calls():
        same, whole = floats(4), floats(5)
        return [lambda: (floats(4), floats(4, seed=1)), lambda: (same.copy(),) * 2, lambda: (lambda w: (w[:4], w[1:]))(whole.copy())]
    against_eager.check(lambda compile: compile(two), [calls()[i] for i in order])


def test_read_only_argument():
    def locked():
        made = floats(4)
        made.flags.writeable = False
        return made
    against_eager.check(lambda compile: compile(augmented),
                        [*mixed(lambda: floats(4))[:1], lambda: (variable(4), locked())])


def test_written_array_is_read_by_reference():
    seen = []
    for function in (augmented, to_static(augmented, strict=True)):
        x, a = variable(4), floats(4)
        y = function(x, a)
        a[:] = 7
        y.grad = np.ones(4, "f")
        y.backward()
        seen.append((x.grad.tolist(), a.tolist()))
    assert seen[0] == seen[1]


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


def numpy_numbers(x):
    s = x.array.sum()
    a = s * 2 if s > 0 else np.float32(3)
    b = np.float32(1) if s > 0 else np.float32(2)
    return a, b, max(s, np.float32(0.5)), min(a, b), x * b


def test_numbers_of_numpy():
    against_eager.check(lambda compile: compile(numpy_numbers), mixed(), compiled=True)


def either_of_the_callers(x, a):
    a[0] = 0.5
    m = np.zeros(4, "f")
    if x.array.sum() > 0:
        a[1] = 2
        m = a
    return m, a


def either_in_a_loop(x, a):
    a += 1
    m, t = a, 0
    while t < int(x.array.sum() > 0):
        m = x.array * 2
        t += 1
    return m, a


def in_a_list_of_the_graph(x, a):
    a += 1
    items, t = [a], 0
    while t < int(x.array.sum() > 0):
        items.append(x.array * 2)
        t += 1
    return items[0], a, len(items)


@pytest.mark.parametrize("function", [either_of_the_callers, either_in_a_loop, in_a_list_of_the_graph],
                         ids=lambda x: x.__name__)
def test_identity_of_the_callers_arrays(function):
    against_eager.check(lambda compile: compile(function), mixed(lambda: floats(4)))


# --- in generated code -------------------------------------------------------------------------------------------------


def filled(x, n):
    a, i = np.zeros((5, 3), "f"), 0
    while i < n:
        a[i] = x.array[0] * i
        i += 1
    return F.sum(x * a), a


def filled_argument(x, n):
    """The loop begins with what somebody else holds, and that is read afterwards."""
    begin, i = x.array * 2, 0
    a = begin.copy()
    while i < n:
        a[i] = -1
        i += 1
    return x * begin, x * a


def filled_by_side(x, n):
    a, i = np.zeros((5, 3), "f"), 0
    while i < n:
        if i > 1:
            a[i, 1:] = i
        else:
            a += 1
        i += 1
    return x * a


def read_before_and_after(x, n):
    """What was there before the write is read after it, in the same iteration."""
    a, i, total = np.ones((5, 3), "f"), 0, np.zeros((5, 3), "f")
    while i < n:
        before = a * 1
        a[i] = 7
        total = total + before + a
        i += 1
    return x * total, x * a


def swapped(x, n):
    a, b, i = np.zeros((5, 3), "f"), np.ones((5, 3), "f"), 0
    while i < n:
        a[i] = i + 2
        a, b = b, a
        i += 1
    return x * a, x * b


def saved_by_gradient(x, n):
    """Each iteration's contents are read again by the backward."""
    a, i, y = np.ones((5, 3), "f"), 0, x
    while i < n:
        a[i] = i + 2
        y = y * a
        i += 1
    return F.sum(y)


def begun_in_another(x, n):
    """The inner loop changes a copy of what the outer one reads afterwards."""
    a, i = np.ones((5, 3), "f"), 0
    total = x
    while i < n:
        b, j = a.copy(), 0
        while j < i:
            b[j] = 3
            j += 1
        total = total + b + a
        a[i] = 5
        i += 1
    return total


def fails_half_way(x, n):
    a, i = np.zeros((2, 3), "f"), 0
    while i < n:
        a[i] = i
        i += 1
    return F.sum(x) + a.sum()


IN_PLACE = [filled, filled_argument, filled_by_side, read_before_and_after, swapped, saved_by_gradient, begun_in_another]


@pytest.mark.parametrize("program", IN_PLACE, ids=lambda f: f.__name__)
def test_filled_in_loops(program):
    """Values, gradients and results of earlier calls, for several counts of one program."""
    compiled = to_static(program)
    kept = []
    for n in (3, 0, 5, 2, 3):
        made = []
        for run in (program, compiled):
            x = chainer.Variable(np.arange(15, dtype="f").reshape(5, 3) / 4)
            results = run(x, np.array(n))
            results = results if isinstance(results, tuple) else (results,)
            F.sum(results[0]).backward()
            made.append([getattr(y, "array", y) for y in results] + [x.grad])
        for want, got in zip(*made):
            np.testing.assert_array_equal(want, got)
        kept += [(got, got.copy()) for got in made[1]]
    for got, copy in kept:
        np.testing.assert_array_equal(got, copy)


@pytest.mark.parametrize("program", [filled, filled_argument, filled_by_side, read_before_and_after])
def test_writes_change_the_array(program):
    """Where nobody reads the contents as they were, the generated loop writes into the array itself."""
    x = chainer.Variable(np.ones((5, 3), "f"))
    code = to_static(program, strict=True).program(x, np.array(3)).code
    assert code.count(".copy('K')") == 1 and "do_" not in code[code.index("while"):code.rindex(" + 1")]


def test_failure_in_a_filled_array():
    compiled = to_static(fails_half_way)
    for n in (1, 3, 2):
        x = chainer.Variable(np.ones((2, 3), "f"))
        if n == 3:
            with pytest.raises(IndexError):
                compiled(x, np.array(n))
        else:
            assert compiled(x, np.array(n)).array == fails_half_way(x, np.array(n)).array


class Holder:
    """Keeps arrays."""

    def __init__(self):
        self.kept = {}


@pytest.mark.parametrize("write", [
    lambda g, x: np.maximum(g, x, out=g), lambda g, x: np.clip(x, 0, 1, out=g), lambda g, x: np.add.at(g, np.array([0, 0]), x[:2]),
    lambda g, x: g.itemset(1, 2) if hasattr(g, "itemset") else g.put([1], [2]), lambda g, x: g.put([0, 1], x[1:])],
    ids=["maximum", "clip", "add_at", "itemset", "put"])
def test_what_may_fail_writes_into_arrays_that_are_kept_already(write):
    """Before what may fail, the program stores what was written so far; the write comes behind that."""
    def make(compile):
        holder = Holder()

        def f(x):
            holder.kept["g"] = g = np.zeros(3, "f")
            write(g, x)
            holder.last = g
        return compile(f), [holder]
    against_eager.check(make, [lambda: (np.arange(3, dtype="f"),)] * 2, backward=False)


@pytest.mark.parametrize("compute", [lambda g, x: g ** 2, lambda g, x: x[0] ** -0.5 + g, lambda g, x: masked(g / x, 0),
                                     lambda g, x: masked(g / x, 1.5)], ids=["power", "number", "mask", "mask_of_floats"])
def test_what_cannot_fail_stores_nothing_before_it(compute):
    def make(compile):
        holder = Holder()

        def f(x):
            holder.kept["g"] = g = np.zeros_like(x)
            holder.last = compute(g, x)
            g += x
        made = compile(f)
        return made, [holder]
    against_eager.check(make, [lambda: (np.arange(1, 4, dtype="f"),), lambda: (np.zeros(3, "d"),)], backward=False, strict=True)


def masked(y, number):
    y[np.isnan(y)] = number
    return y


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
