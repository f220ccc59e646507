"""Writes into arrays: what is seen of a call, memory that is shared included, is what the eager call shows."""
import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable
from chainer import Variable
from written_arrays import Box, Scaled, floats, mixed

from dy2static import to_static

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


def results_in_new_shapes(x):
    images = x.array.reshape(1, 1, 2, 2)
    small = F.resize_images(images, (3, 2)).array
    part = small[0, 0]
    small[small > 0.2] = 1
    part[1] *= 3
    return F.sum(x) * small, images


def results_that_are_views(x):
    images = x.array.reshape(1, 1, 2, 2)
    F.depth2space(images, 1).array[...] += 1            # a view, as it has blocks of one
    return x * images.ravel()


LOCAL = [(f, True) for f in (items, masks, rows_of_a_mask, parts_of_sizes_that_the_run_knows, parts_that_do_not_fit, operators, functions, views, view_of_a_view, overlapping, copies_are_not_views,
                             aliases, scalars, number_as_index, out_of_bounds,
                             results_in_new_shapes)]
LOCAL += [(rows_of_a_changed_mask, None), (wrong_cast, None), (read_only, None), (reshape_of_unknown, None), (results_that_are_views, None)]


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


class Ridge:
    """Adds to a matrix in place, and keeps what is computed from it."""

    def __init__(self):
        self.a, self.inverse, self.weights = np.eye(3, dtype="f"), None, None

    def add(self, x):
        self.a += x.T @ x
        self.inverse = np.linalg.inv(self.a)
        self.weights = np.linalg.solve(self.a, x.sum(axis=0)), np.linalg.cholesky(self.a)
        return x @ self.weights[0]


def test_what_linalg_makes_of_a_written_array_is_no_view_of_it():
    def make(compile):
        ridge = Ridge()
        return compile(ridge.add), [ridge]
    against_eager.check(make, [lambda seed=seed: (floats(4, 3, seed=seed),) for seed in range(3)], compiled=True)


# --- parts of arrays, in their own memory ------------------------------------------------------------------------------


def row_at_a_number(x, a, i, box):
    y = F.tanh(x)
    box.count += 1
    a[i] = y.array[:2, None] + a[0, 0]
    box.count += 1
    return y


def several_parts(x, a, i, box):
    a[0, ::2] = x.array[0]
    a[i:] *= 2
    a[i, None] = 7
    a[-1][1:] = x.array[1:2]
    return x * 2


def parts_changed(x, a, i, box):
    a[1:3] += x.array[0]
    a[0][1:] *= 2
    a[0, ::2] -= 1
    return x * 2


def part_of_itself(x, a, i, box):
    a[1] = a[i]
    a[0, 0] -= a[1, 1] * 3
    return x * i


def part_that_is_read(x, a, i, box):
    a[i, 1] = 5
    return x * a[0, 0, 0] + a.sum()


def part_of_what_is_computed(x, a, i, box):
    a *= 2
    a[i] = 1
    return x + 1


def part_given_back(x, a, i, box):
    part = a[1:]
    a[i] = x.array[:2, None]
    return x * 2, a, part


@pytest.mark.parametrize("function", [row_at_a_number, several_parts, parts_changed, part_of_itself, part_that_is_read, part_of_what_is_computed,
                                      part_given_back], ids=lambda x: x.__name__)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_parts_of_arrays_of_the_user(function, backend):
    calls = [lambda k=k: (variable(4, seed=k % 3), floats(3, 2, 2048), k, Box(count=0)) for k in (0, 2, 1, -1, 3, 2, -3, -4)]
    against_eager.check(lambda compile: compile(function), calls, backend=backend)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_parts_are_written_where_they_are(backend):
    compiled = to_static(row_at_a_number, backend=backend)
    a = np.zeros((5000, 2, 1), "f")
    for i in (3, 7, 11, 4999):
        compiled(variable(4), a, i, Box(count=0))
    program = compiled.program(variable(4), a, 5, Box(count=0))
    assert program.peak_bytes < a.nbytes / 2 and "] = " in program.source
    with pytest.raises(IndexError, match="5000"):
        compiled(variable(4), a, 5000, Box(count=0))
    changed = to_static(parts_changed, backend=backend)
    changed(variable(4), a.copy(), 0, Box(count=0))
    assert changed.program(variable(4), a, 0, Box(count=0)).peak_bytes < a.nbytes / 2
    assert np.count_nonzero(a[:, 0, 0]) == 4 and compiled.stats()["captures"] <= 2
