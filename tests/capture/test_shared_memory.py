"""Arrays of the caller's that share memory, one of which the function writes."""
import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable
from written_arrays import floats

from dy2static import load, save, to_static


def each(x, a, b):
    a *= 2.0
    b[1:] += 1.0
    return chainer.Variable(a + 0) * b * x


def read_between(x, a, b):
    before = b.copy()
    a[0] = 5
    h = x * b[0]
    b[-1] = a[1] * 3
    return h + a[-1], before, a.sum(), b + a


def under_decision(x, a, b):
    v = b[1:]
    if x.array.sum() > 0:
        a[:] = b[::-1] * 0.5
    else:
        b += 1
    return x * v[0], v + 0


def in_loop(x, a, b):
    i = 0
    while i < 3 and a.sum() < 6:
        a += 0.5
        b[0] = a[-1]
        i += 1
    return x * i, b.copy()


def seen_by_the_host(x, a, b):
    a[1:3] = 7
    print(b)
    b[0] = -1
    print(a, x.array)
    return F.tanh(x)


def swapped(x, a, b):
    kept = a.copy()
    a[:] = b
    b[:] = kept
    return x * a[0] + b[1]


def met_late(x, a, b):
    a *= 3
    h = F.tanh(x) * a[0]
    return h * b[1] + b.sum()


PROGRAMS = [each, read_between, under_decision, in_loop, seen_by_the_host, swapped, met_late]


def _places():
    line, field = floats(12), floats(4, 3)
    return [(line[:4], line[1:5]), (line[3:7], line[4:8]), (line[:4], line[3::-1]), (line[:4], line[:4]), (field[:, 0], field[:, 1]),
            (field[1, :2], field[:2, 1]), (line[::3], line[1::3]), (line[:4], floats(4, seed=1)), (field.T[0], line[4:8])]


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_every_way_of_sharing(program, backend, monkeypatch):
    """One compiled function for all: each way has a program of its own, and the second call of each finds it."""
    ways = range(len(_places())) if backend == "numpy" else (0, 2, 4)
    calls = [lambda way=way: (variable(4, seed=way), *_places()[way]) for way in ways]
    against_eager.check(lambda compile: compile(program), calls, compiled=True, backend=backend)


def test_programs_are_found_again():
    compiled = to_static(each, strict=True)
    for _ in range(3):
        for way in (0, 1, 2):
            compiled(variable(4), *_places()[way])
    assert compiled.stats()["captures"] == 2            # the first two lie alike


def fills_the_first(x, a, b):
    a[0] = 4
    return x * b


@pytest.mark.parametrize("make, compiled", [
    (lambda whole: (whole, np.broadcast_to(whole, (3, 4))), True),
    (lambda whole: (whole, np.lib.stride_tricks.as_strided(whole, (3, 2), (4, 4))), True),
    (lambda whole: (np.broadcast_to(whole[:1], 4), whole), None),                   # read-only
    (lambda whole: (np.lib.stride_tricks.as_strided(whole, (4,), (0,)), whole), None),
    (lambda whole: (whole, whole.view(np.int32)), None),
    (lambda whole: (whole, np.ndarray(3, "f", whole, 2)), None)],
    ids=["broadcast", "windows", "read-only", "one place", "dtypes", "parts"])
def test_arrays_that_lie_in_unusual_ways(make, compiled):
    def calls():
        made = make(np.arange(1, 5, dtype="f"))
        return variable(*np.broadcast_shapes(made[1].shape, (1,))), *made
    against_eager.check(lambda compile: compile(fills_the_first), [lambda: (variable(4), floats(4), floats(4)), calls], compiled=compiled)


def test_parameters_that_share_memory():
    def make(compile):
        link = chainer.Link()
        whole = floats(6)
        with link.init_scope():
            link.v, link.w = chainer.Parameter(whole[:4]), chainer.Parameter(whole[2:])

        def f(x):
            with chainer.no_backprop_mode():
                link.v.array[...] = np.clip(link.v.array, -0.5, 0.5)
            return F.sum(x.array * link.w.array)
        return compile(f), link
    against_eager.check(make, [lambda: (variable(4),)] * 2, compiled=True)


def test_saved(tmp_path):
    compiled = to_static(each, strict=True)
    for way in (0, 7):
        compiled(variable(4), *_places()[way])
    save(compiled, tmp_path / "model")
    loaded = load(tmp_path / "model")
    for way in (0, 7):
        seen = []
        for run in (each, loaded):
            x, (a, b) = variable(4), _places()[way]
            seen.append((run(x, a, b).array.tolist(), a.tolist(), b.tolist()))
        assert seen[0] == seen[1]
    with pytest.raises(Exception, match="memory"):
        loaded(variable(4), *_places()[2])


def held_by_a_backward(x, a):
    y = F.tanh(x) * a
    a *= 2
    return F.sum(F.exp(y) * 3)


def view_leaves(x, a):
    h = F.tanh(F.exp(x)) * 2
    a[1] = 3
    return h, a[1:]


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("program", [held_by_a_backward, view_leaves])
def test_the_line_that_writes_is_a_cut(program, backend):
    against_eager.check(lambda compile: compile(program), [lambda k=k: (variable(4, seed=k), floats(4)) for k in range(2)],
                        backend=backend)
    compiled = to_static(program, strict="parts", backend=backend)
    with pytest.warns(match="runs as Python, between compiled parts"):
        compiled(variable(4), floats(4))
    assert compiled.stats()["cuts"] == 1


def test_arrays_apart_are_not_compared_in_pairs(monkeypatch):
    """Of 60 arrays, two of which share memory with a third one."""
    compared = []
    may_share = np.may_share_memory
    monkeypatch.setattr("dy2static.symbolic.overlaps.np.may_share_memory", lambda a, b: compared.append(1) or may_share(a, b))

    def f(x, arrays):
        for array in arrays:
            array *= 2.0
        return x + arrays[0]

    def made():
        base = floats(8)
        return [np.full(4, i, np.float32) for i in range(57)] + [base, base[:4], base[4:]]
    compiled, arrays, expected = to_static(f, strict=True), made(), made()
    x = chainer.Variable(floats(4))
    for _ in range(2):
        assert np.array_equal(compiled(x, arrays).array, f(x, expected).array)
        assert all(np.array_equal(a, b) for a, b in zip(arrays, expected))
    assert len(compared) < 60
