"""``.flat`` and ``.data`` of arrays, going over arrays that are written meanwhile, and questions about attributes."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from tests.against_eager import array, check, variable


def _filled(a):
    b = a.copy()
    b.flat[2], b.flat[-1] = 7, 1.5
    b.flat[::4] = [8, 9]
    b.flat[[1, 3]] = 0
    b.T.flat[1] = -2
    b[:, 1:].flat = a[0]
    return b


def _filled_by_place(a):
    b, i = a.copy(), int(abs(a.sum())) % 3
    b.flat[i] = b.flat[i + 1] * 2
    return b


def _until(a):
    total = 0.0
    for item in a.flat:
        if item > 0.5:
            break
        total = total + item
    return total


def _written_through_buffer(a):
    b = a.copy()
    c = np.asarray(b.data)
    c[0] = 5
    b[1] = 6
    return b, c


def _scaled(x, a):
    y = x * a.flat[2] + x.array.flat[0]
    return F.sum(y * y) * a[0].data[1]


def _halved(x, a):
    while abs(float(a.flat[0])) > 0.1:
        a = a / 2
        x = x * 2
    return x


#: Of a Variable ``x`` and an array ``a``, both (2, 3) float32.
PROGRAMS = {
    "items": lambda x, a: (a.flat[3], a.flat[-1], a.flat[1:4], a.flat[::2], a.flat[[1, 2]], a.flat[a.ravel() > 0], a.T.flat[1]),
    "number of an item": lambda x, a: (float(a.flat[0]), a.flat[1].item(), a.flat[2] > 0 and 5 or 3, a.sum().flat[0]),
    "item by place": lambda x, a: a.flat[int(abs(a.sum())) % 3],
    "outside": lambda x, a: a.flat[int(abs(a.sum()) * 100) + 6],
    "all": lambda x, a: ([v * 2 for v in a.flat], list(enumerate(a.flat))[1], len(a.flat), sum(a.flat), max(a.flat), sorted(a.flat)[0]),
    "as an array": lambda x, a: (np.array(a.flat), a.flat.copy(), a.flat == a.flat[1], np.mean(a.flat), np.concatenate([a[0], a.flat])),
    "kind": lambda x, a: (type(a.flat) is np.flatiter, isinstance(a.flat, np.ndarray), a.flat.base is a, type(a.data) is memoryview),
    "filled": lambda x, a: _filled(a),
    "filled by place": lambda x, a: _filled_by_place(a),
    "until": lambda x, a: _until(a),
    "buffer": lambda x, a: (np.asarray(a.data) + 1, np.array(a.data), np.array(a.T.data, "d"), len(a.data), a.data.tolist(), a.data[1, 2],
                            a[0].data[1:].tolist(), list(a[1].data), np.stack([a.data, a.data])),
    "shape of a buffer": lambda x, a: (a.data.shape, a.data.ndim, a.data.itemsize, a.data.nbytes, a.data.format, a.data.obj is a),
    "of a Variable": lambda x, a: (np.array(x.data.data), chainer.backend.get_array_module(x, a.data) is np),
    "a view": lambda x, a: _written_through_buffer(a),
    "bytes": lambda x, a: (a.tobytes(), bytes(a), bytes(a.T.data), {"k": a.tobytes("F")}),
    "scaled": _scaled,
    "loop": _halved,
    "attributes": lambda x, a: ([hasattr(a, name) for name in ("flat", "data", "base", "ctypes", "__array_interface__", "nope")],
                                [hasattr(x, name) for name in ("node", "creator", "rank", "to_gpu", "nope")], hasattr(a[0, 0], "item")),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_parts(name):
    program = PROGRAMS[name]

    def make(compile):
        def run(x, a):
            return program(x, a)
        return compile(run)
    check(make, [lambda seed=seed: (variable(2, 3, seed=seed), array(2, 3, seed=seed + 1)) for seed in (0, 1)] +
          [lambda: (variable(2, 3), np.asfortranarray(array(2, 3, seed=5))), lambda: (variable(2, 3), array(4, 6)[::2, ::2])],
          rounds=1, compiled=True)


def _added_meanwhile(a):
    a, out = a.copy(), []
    for i, v in enumerate(a):
        out.append(v * 1)
        a += i + 1
    return out


def _multiplied_meanwhile(a):
    a, out = a.copy(), []
    for v, w in zip(a.flat, a):
        out.append(v * w)
        a *= 2
        if v > 1:
            break
    return out


def _advanced(a):
    a = a.copy()
    items = iter(a)
    first = next(items)
    a += 1
    return first, next(items), [float(v) + float(a.__iadd__(1).sum()) for v in a]


@pytest.mark.parametrize("program", [_added_meanwhile, _multiplied_meanwhile, _advanced])
def test_gone_over_while_written(program):
    check(lambda compile: compile(program), [lambda: (np.arange(4, dtype="f"),), lambda: (np.arange(5, 9, dtype="f"),)])


def _twice(a):
    items = a.flat
    return [v for v in items], [v for v in items]


def _from_itself(a):
    a.flat = a.T
    return a


@pytest.mark.parametrize("program", [_twice, _from_itself, lambda a: F.relu(a.data), lambda a: a.data == a.data])
def test_runs_eagerly(program):
    check(lambda compile: compile(program), [lambda: (array(2, 3),)], compiled=None)


def test_names_of_modules():
    def run(a):
        return hasattr(F, "added_later"), getattr(np, "added_later", None), getattr(F, "relu")(a)

    compiled = to_static(run)
    a = array(2, 3)
    assert compiled(a)[:2] == compiled(a)[:2] == (False, None)
    F.added_later, np.added_later = len, 3
    try:
        assert compiled(a)[:2] == compiled(a)[:2] == (True, 3)
    finally:
        del F.added_later, np.added_later
    assert compiled(a)[:2] == (False, None) and compiled.stats()["fallbacks"] == 0
