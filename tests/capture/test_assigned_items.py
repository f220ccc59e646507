"""Items of lists that are assigned at places which only the run knows."""
import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable
from chainer import Variable

from dy2static import to_static


def allocation(u, w):
    """The allocation weighting of a differentiable neural computer."""
    n = len(u.array)
    phi = np.argsort(u.array.reshape(n))
    a, rest = [None] * n, Variable(np.ones((1, 1), "f"))
    for i in range(n):
        a[phi[i]] = rest * (1 - F.reshape(u[phi[i], 0], (1, 1)))
        rest *= F.reshape(u[phi[i], 0], (1, 1))
    return F.concat(a, axis=0) * w


def from_the_end(u, w):
    order, out, scale = np.argsort(u.array[:, 0])[::-1], [0] * 6, 1.0
    for k in order:
        out[int(k)] = u[k] * scale
        scale *= 0.5
    return F.stack(out) * w, len(out)


def swapped(u, w):
    rows = [u[i] for i in range(6)]
    k = int(F.argmax(u).array)
    rows[0], rows[k] = rows[k], rows[0]
    return F.stack(rows) * w


def written_again(u, w):
    rows = list(F.separate(u, axis=0))
    places = (u.array[:, 0] * 5.9).astype("i")           # some twice, some negative
    for count, k in enumerate(places):
        rows[k] = F.tanh(rows[k]) + count
    return F.stack(rows) * F.reshape(w, (6,)), rows


def arrays(u, w):
    rows = [w[i] * 2 for i in range(6)]
    for count, k in enumerate((u.array[:, 0] * 5.9).astype("i")):
        rows[k] = w[count] + count
    return u * np.stack(rows), sum([row.sum() for row in rows])


def numbers(u, w):
    counts, sums, seen = [0] * 4, [0.0] * 4, [False] * 4
    for i, k in enumerate(F.argmax(F.reshape(F.concat([u, u]), (3, 4)), axis=1).array):
        counts[k] += 1
        sums[int(k)] += float(u.array[i, 0])
        seen[k] = True
    return u * w, counts, sums, seen


def read_in_every_way(u, w):
    phi, out = np.argsort(u.array[:, 0]), [0] * 6
    held = {"out": out}
    for i in range(6):
        out[phi[i]] = u[i] * i
    first, *others = out
    return first, others, (*out,), out + [3.0], held, sum(out), max(out, key=lambda v: float(v.array[0]))


def leaving(u, w):
    phi, out = np.argsort(u.array[:, 0]), [0] * 6
    both = out
    for i in range(6):
        out[phi[i]] = u[i] * i
    copied = [list(out), out]
    out[0] = 5.0
    return copied, both, len(both)


def decisions_between(u, w):
    rows = [u[i] for i in range(6)]
    for i in range(6):
        k = F.argmax(F.concat(rows, axis=0)).array
        rows[k] = rows[k] * 0.3
        if float(rows[0].array[0]) > 0:
            rows[1] = rows[1] + rows[0]
        rows[i] = rows[i] + 0.1
    return F.stack(rows) * w


def gradient_inside(u, w):
    phi, out, q = np.argsort(u.array[:, 0]), [None] * 6, 1.0
    for i in range(6):
        out[phi[i]] = u[phi[i]] * q
        q *= 0.7
    y = F.sum(F.concat(out, axis=0) ** 2 * np.arange(6).astype("f"))
    g, = chainer.grad([y], [u], enable_double_backprop=True)
    return y + F.sum(g * g * w)


def calls():
    return [lambda k=k: (variable(6, 1, seed=k), np.random.RandomState(k).rand(6, 1).astype("f")) for k in range(4)]


@pytest.mark.parametrize("function", [allocation, from_the_end, swapped, written_again, arrays, numbers, read_in_every_way, leaving,
                                      decisions_between, gradient_inside], ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_assigned_items(function, backend):
    against_eager.check(lambda compile: compile(function), calls(), compiled=True, backend=backend)


def variables_from_before(compile):
    """These stay the objects that they are, in the items that are not assigned."""
    parameters = [chainer.Parameter(np.full(1, k, "f")) for k in range(3)]

    def function(u, w):
        out, k = list(parameters), int(F.argmax(u[:3]).array)
        out[k] = F.tanh(parameters[k] * 2)
        return F.concat(out, axis=0) * u[:3, 0], out[0], out[1] is parameters[1]
    return compile(function), parameters


def test_variables_from_before():
    against_eager.check(variables_from_before, calls(), compiled=True)


def test_one_program_for_all_orders():
    function = to_static(allocation)
    for make in calls():
        function(*make())
    assert function.cache_info().captures == 1


def out_of_range(u, k):
    rows = [u * 1, u * 2, u * 3]
    try:
        rows[k.sum()] = u
    except IndexError as error:
        return F.concat(rows, axis=0), str(error)
    return F.concat(rows, axis=0), ""


def raises(u, k):
    rows = [u * 1, u * 2, u * 3]
    rows[k.sum()] = u
    return F.concat(rows, axis=0)


@pytest.mark.parametrize("function", [out_of_range, raises], ids=lambda f: f.__name__)
def test_no_such_place(function):
    against_eager.check(lambda compile: compile(function),
                        [lambda k=k: (variable(2), np.full(2000, k)) for k in (0, 1, -1, 3000, -3000)][:3] +
                        [lambda k=k: (variable(2), np.r_[k, np.zeros(1999, int)]) for k in (2, 3, -3, -4)])


def some_are_none(u, w):
    out = [None] * 6
    for i in np.argsort(u.array[:, 0])[:3]:
        out[i] = F.sum(u[i])
    return [item is None for item in out], sum([item for item in out if item is not None])


def of_other_shapes(u, w):
    out = [u[0], u[:, 0], u]
    out[int(F.argmax(u).array) % 3] = u[0]
    return out


def the_same_object(u, w):
    out = [u * 1, u * 2, u * 3]
    out[int(F.argmax(u).array) % 3] = u
    return F.sum(out[0] * out[1]), out


def wait_in_a_branch(u, w):
    out = [u * 1, u * 2, u * 3]
    if w.sum() > 3:
        out[int(F.argmax(u).array) % 3] = u * 4
    return F.concat(out, axis=0)


@pytest.mark.parametrize("function", [some_are_none, of_other_shapes, the_same_object, wait_in_a_branch], ids=lambda f: f.__name__)
def test_what_may_not_be_compiled_is_as_in_eager_mode(function):
    against_eager.check(lambda compile: compile(function), calls())
