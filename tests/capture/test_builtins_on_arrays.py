"""Python's builtins, operators and statements on values of arrays: the same values, types, gradients and exceptions."""
import decimal
import math
import operator

import chainer.functions as F
import numpy as np
import pytest

from tests.against_eager import check, variable

#: Of a Variable ``x`` (3,) float32, its array ``a``, and an array ``n`` (4,) int64 of small numbers above zero.
PROGRAMS = {
    "int of item": lambda x, a, n: int(n[0]),
    "int of 0-d": lambda x, a, n: int(n.sum()),
    "int of float": lambda x, a, n: int(a[0] * 10),
    "int of (1,)": lambda x, a, n: int(n[:1][0]),
    "int of item()": lambda x, a, n: int(a.max().item() * 3),
    "float": lambda x, a, n: float(a[1]),
    "float of int": lambda x, a, n: float(n[1]),
    "bool": lambda x, a, n: bool(a[0] > 0),
    "bool of number": lambda x, a, n: bool(n[0]),
    "complex": lambda x, a, n: complex(a[0]),
    "Variable added to an array": lambda x, a, n: operator.iadd(np.zeros(3, "f"), x * 2),
    "array less a Variable": lambda x, a, n: operator.isub(a * 2, x),
    "Variable by an array and a remainder": lambda x, a, n: operator.imod(a * 2, x),
    "sum of sums": lambda x, a, n: np.sum([np.sum(a * k) for k in range(3)]),
    "abs array": lambda x, a, n: abs(a),
    "abs scalar": lambda x, a, n: abs(a[0]),
    "abs float": lambda x, a, n: abs(float(a[0])),
    "abs int": lambda x, a, n: abs(int(n[0]) - 4),
    "len": lambda x, a, n: len(a) + len(x),
    "len of row": lambda x, a, n: len(n[1:]),
    "min": lambda x, a, n: min(a),
    "max": lambda x, a, n: max(n),
    "max of two": lambda x, a, n: max(a[0], a[1]),
    "min of number and value": lambda x, a, n: min(1, int(n[0])),
    "max of float and int": lambda x, a, n: max(float(a[0]), 0),
    "max of scalar and float": lambda x, a, n: max(a[0], 0.0),
    "max with key": lambda x, a, n: max(n, key=lambda k: -k),
    "max with default": lambda x, a, n: max([], default=a[0]),
    "max of list": lambda x, a, n: max([float(v) for v in a]),
    "min of generator": lambda x, a, n: min(float(v) for v in a),
    "max of tuples": lambda x, a, n: max([(float(v), i) for i, v in enumerate(a)]),
    "argmax by key": lambda x, a, n: max(range(3), key=lambda i: float(a[i])),
    "argmin by key of items": lambda x, a, n: min(range(3), key=a.__getitem__),
    "sum": lambda x, a, n: sum(a),
    "sum of ints": lambda x, a, n: sum(n),
    "sum from": lambda x, a, n: sum(n, 10),
    "sum of floats": lambda x, a, n: sum(float(v) for v in a),
    "sum of Variables": lambda x, a, n: sum([x, x * 2]),
    "sum of decisions": lambda x, a, n: sum(float(v) > 0 for v in a),
    "any": lambda x, a, n: any(a > 0),
    "all": lambda x, a, n: all(a > 0),
    "any of generator": lambda x, a, n: any(float(v) > 0.3 for v in a),
    "all of list": lambda x, a, n: all([v > -0.5 for v in a]),
    "sorted": lambda x, a, n: sorted(a),
    "sorted numbers": lambda x, a, n: sorted(int(v) for v in n),
    "sorted reverse": lambda x, a, n: sorted(n, reverse=True),
    "sorted by key": lambda x, a, n: sorted(range(3), key=lambda i: float(a[i])),
    "sorted tuples": lambda x, a, n: sorted((float(v), i) for i, v in enumerate(a)),
    "sorted strings by key": lambda x, a, n: sorted(["p", "q", "r"], key=lambda s: float(a["pqr".index(s)])),
    "map": lambda x, a, n: list(map(float, a)),
    "map of function": lambda x, a, n: list(map(lambda v: v * 2, n)),
    "map of two": lambda x, a, n: list(map(operator.mul, a, n)),
    "filter": lambda x, a, n: list(filter(lambda v: v > 0, a)),
    "filter none": lambda x, a, n: list(filter(None, n - 1)),
    "comprehension if": lambda x, a, n: [float(v) for v in a if v > 0],
    "round": lambda x, a, n: round(float(a[0])),
    "round digits": lambda x, a, n: round(float(a[0]), 2),
    "round scalar": lambda x, a, n: round(a[0]),
    "round scalar digits": lambda x, a, n: round(a[0], 1),
    "round int": lambda x, a, n: round(int(n[0])),
    "range": lambda x, a, n: [i for i in range(int(n[0]))],
    "range sum": lambda x, a, n: sum(range(int(n[0]))),
    "list of range": lambda x, a, n: list(range(int(n[0]))),
    "len of range": lambda x, a, n: len(range(int(n[0]))),
    "len of empty range": lambda x, a, n: len(range(int(n[0]), 2)) + len(range(0, -int(n[0]), -2)),
    "in range": lambda x, a, n: int(n[0]) in range(3),
    "divmod": lambda x, a, n: divmod(int(n[0]), int(n[1])),
    "divmod scalars": lambda x, a, n: divmod(n[0], n[1]),
    "divmod arrays": lambda x, a, n: divmod(n, 2),
    "divmod floats": lambda x, a, n: divmod(float(a[0]), 0.3),
    "pow": lambda x, a, n: pow(float(a[0]), 2),
    "pow ints": lambda x, a, n: pow(int(n[0]), int(n[1])),
    "pow mod": lambda x, a, n: pow(int(n[0]), int(n[1]), 5),
    "pow negative": lambda x, a, n: int(n[0]) ** -int(n[1]),
    "pow arrays": lambda x, a, n: pow(a, 2),
    "factorial and choices": lambda x, a, n: (math.factorial(int(n[0])), math.comb(int(n[1]), int(n[0])), 10 ** -int(n[0])),
    "number to array": lambda x, a, n: 2 ** n,
    "zip": lambda x, a, n: [p * q for p, q in zip(a, n)],
    "zip of lists": lambda x, a, n: dict(zip("pqr", a)),
    "enumerate": lambda x, a, n: [i * v for i, v in enumerate(a, 1)],
    "reversed": lambda x, a, n: list(reversed(a)),
    "iter and next": lambda x, a, n: next(iter(a)),
    "next default": lambda x, a, n: next((v for v in a if v > 0), None),
    "next of numbers": lambda x, a, n: next((i for i, v in enumerate(a) if v > 0), -1),
    "unpack": lambda x, a, n: (lambda p, q, r: p + q * r)(*a),
    "unpack rest": lambda x, a, n: [*a, *n],
    "slice of list by value": lambda x, a, n: [1, 2, 3, 4][: int(n[0])],
    "index of list by value": lambda x, a, n: [1.5, 2.5, 3.5, 4.5][int(n[0]) - 1],
    "index of texts by value": lambda x, a, n: "abcdef"[int(n[0])],
    "index of tuple by item": lambda x, a, n: (10, 20, 30, 40)[n[0] - 1],
    "key of dict by value": lambda x, a, n: {1: 5.0, 2: 6.0, 3: 7.0}.get(int(n[0])),
    "dict of ints": lambda x, a, n: {int(n[0]): 1},
    "set of ints": lambda x, a, n: {int(n[0]), int(n[1])},
    "in list": lambda x, a, n: int(n[0]) in [1, 2],
    "in tuple of floats": lambda x, a, n: float(a[0]) in (0.0, 1.0),
    "in array": lambda x, a, n: 2 in n,
    "in dict": lambda x, a, n: int(n[0]) in {1: 2},
    "not in set": lambda x, a, n: int(n[0]) not in {1, 3},
    "is None": lambda x, a, n: (a is None, x is not None, a[0] is None, float(a[0]) is None),
    "== None": lambda x, a, n: a[0] == None,                                                    # noqa: E711
    "is": lambda x, a, n: (a is a, x.array is a, x is x),
    "isinstance": lambda x, a, n: (isinstance(a, np.ndarray), isinstance(a[0], np.floating), isinstance(a[0], float),
                                   isinstance(n[0], int), isinstance(float(a[0]), float), isinstance(int(n[0]), (int, str)),
                                   isinstance(bool(a[0]), int), isinstance(a.sum(dtype="d"), float)),
    "type": lambda x, a, n: (type(a) is np.ndarray, type(a[0]) is np.float32, type(a[0].item()) is float, type(n.sum()).__name__),
    "callable, hasattr": lambda x, a, n: (callable(a), hasattr(a, "shape"), hasattr(a[0], "item"), getattr(a, "nope", 3)),
    "dtypes of operations": lambda x, a, n: [a * 2, a * 2.5, a + n[0], a * np.float64(2), n / 2, n // 2, n * 2.0, a[0] * 2,
                                             a[0] * 2.0, a[0] + n[0], n[0] / n[1], a * np.float32(3), a > 0, -a, n % 2],
    "dtypes of Python and NumPy scalars": lambda x, a, n: [1.0 / a[0], 2 - n[0], float(a[0]) * a[1], int(n[0]) * a[0],
                                                           float(a[0]) * n[0], a[0] ** 2, 2.0 ** n[0], True + n[0]],
    "math": lambda x, a, n: (math.exp(a[0]), math.floor(a[0] * 5), math.sqrt(n[0]), math.isnan(a[1]), math.ceil(float(a[1])),
                             math.hypot(a[0], a[1]), math.fsum([float(v) for v in a])),
    "trunc and methods of numbers": lambda x, a, n: (float(a[0]).is_integer(), int(n[0]).bit_length(), float(a[0]).hex()),
    "as_integer_ratio": lambda x, a, n: float(a[0]).as_integer_ratio(),
    "real": lambda x, a, n: (float(a[0]).real, float(a[0]).imag, int(n[0]).numerator),
    "chained comparison": lambda x, a, n: -0.5 < float(a[0]) < 0.5,
    "and or": lambda x, a, n: (a[0] > 0 and a[1] > 0, a[0] > 0 or a[1], not a[0]),
    "conditional expression": lambda x, a, n: a[1] if a[0] > 0 else a[2],
    "f-string": lambda x, a, n: f"{float(a[0]):.3f} {int(n[0]):>4} {n} {a.shape} {a[0] > 0!r}",
    "format": lambda x, a, n: "{:.2e} {}".format(float(a[0]), int(n[1])),
    "percent": lambda x, a, n: "%.2f and %d" % (float(a[0]), int(n[0])),
    "str and repr": lambda x, a, n: str(n) + repr(n[0]) + str(float(a[0])),
    "join": lambda x, a, n: ", ".join(str(int(v)) for v in n),
    "print": lambda x, a, n: print("value", float(a[0]), n, a[1], sep="|"),
    "tolist": lambda x, a, n: (a.tolist(), n[0].tolist(), n.tolist(), n[:0].tolist()),
    "list of array": lambda x, a, n: list(a),
    "tuple of array": lambda x, a, n: tuple(n),
    "set of array": lambda x, a, n: set(n.tolist()),
    "bitwise of ints": lambda x, a, n: (int(n[0]) & 3, int(n[0]) | 8, int(n[0]) ^ 1, ~int(n[0]), int(n[0]) << 2, int(n[1]) >> 1),
    "shift by value": lambda x, a, n: 1 << int(n[0]),
    "bool arithmetic": lambda x, a, n: (a[0] > 0) + 1,
    "python bool arithmetic": lambda x, a, n: bool(a[0] > 0) + bool(a[1] > 0),
    "bool index": lambda x, a, n: (3.0, 4.0)[bool(a[0] > 0)],
    "sign": lambda x, a, n: (a[0] > 0) - (a[0] < 0) if False else int(a[0] > 0) - int(a[0] < 0),
    "times Variable": lambda x, a, n: x * float(a[0]),
    "times Variable int": lambda x, a, n: x * int(n[0]) + int(n[1]),
    "Variable to power": lambda x, a, n: (x * x + 1) ** float(a[0]),
    "divided by Variable": lambda x, a, n: float(a[0]) / (x * x + 1),
    "Variable of list": lambda x, a, n: F.sum(F.stack([x[i] * float(v) for i, v in enumerate(a)])),
    "scaled by max": lambda x, a, n: x / max(1.0, float(abs(a).max())),
    "clipped": lambda x, a, n: x * min(max(float(a[0]), -0.3), 0.3),
    "array of values": lambda x, a, n: np.array([float(a[0]), int(n[0])]),
    "array of scalars": lambda x, a, n: np.array([a[0], a[1]]),
    "array of bools": lambda x, a, n: np.array([v > 0 for v in a]),
    "array of mixed": lambda x, a, n: np.asarray([1.5, float(a[0])], "f"),
    "np.float32 of": lambda x, a, n: np.float32(float(a[0])) * x,
    "np.int32 of": lambda x, a, n: np.int32(n[0]) + n,
    "np.bool_ of": lambda x, a, n: np.bool_(a[0] > 0),
    "full of value": lambda x, a, n: np.full((2, 2), float(a[0]), "f"),
    "linspace to value": lambda x, a, n: np.linspace(0, float(a[0]), 4),
    "fromiter": lambda x, a, n: np.fromiter((float(v) for v in a), "d"),
    "item": lambda x, a, n: (a[0].item(), a.item(1), n.max().item()),
    "slice by value": lambda x, a, n: x[: int(n[0])] * 2,
    "slice of array by value": lambda x, a, n: a[int(n[0]) - 1:],
    "slice of array by values": lambda x, a, n: n[int(n[0]) - 1: int(n[1])],
    "zeros of value": lambda x, a, n: np.zeros(int(n[0])),
    "ones of shape with value": lambda x, a, n: np.ones((int(n[0]), 2), "f"),
    "arange of value": lambda x, a, n: np.arange(int(n[0])),
    "full of size": lambda x, a, n: np.full(int(n[0]), 2.5),
    "eye of value": lambda x, a, n: np.eye(int(n[0])),
    "repeat by value": lambda x, a, n: np.repeat(a, int(n[0])),
    "list times value": lambda x, a, n: [0] * int(n[0]),
    "mask": lambda x, a, n: a[a > 0],
    "mask sum": lambda x, a, n: a[a > 0].sum(),
    "mask of Variable": lambda x, a, n: F.sum(x[a > 0]),
    "nonzero": lambda x, a, n: np.nonzero(a > 0),
    "where of one": lambda x, a, n: np.where(a > 0)[0],
    "argwhere": lambda x, a, n: np.argwhere(n > 1),
    "unique": lambda x, a, n: np.unique(n),
    "flatnonzero": lambda x, a, n: x[np.flatnonzero(a > 0)],
    "compress": lambda x, a, n: np.compress(n > 1, n),
    "len of mask": lambda x, a, n: len(n[n > 1]),
    "where": lambda x, a, n: np.where(a > 0, a, 0),
    "stack of list": lambda x, a, n: np.stack([v * 2 for v in a]),
    "stack of kept": lambda x, a, n: np.stack([a * 0] + [a * v for v in a if v > 0]),
    "concatenate of kept": lambda x, a, n: np.concatenate([a] + [a * v for v in a if v > 0]),
    "size of zeros of value": lambda x, a, n: np.zeros(int(n[0])).shape,
    "size of unique": lambda x, a, n: np.unique(n).size * 2,
    "size of unique floats": lambda x, a, n: np.unique(a.round()).shape,
    "size of nonzero floats": lambda x, a, n: len(np.nonzero(a.round())[0]),
    "size of repeat by array": lambda x, a, n: np.repeat(n, n).size,
    "size of arange of item": lambda x, a, n: len(np.arange(n[0])),
    "size of bincount": lambda x, a, n: np.bincount(n).shape,
    "size of histogram": lambda x, a, n: np.histogram(n, bins="auto")[0].shape,
    "size of intersection": lambda x, a, n: np.intersect1d(n[:1], n[1:2]).size,
    "Decimal": lambda x, a, n: decimal.Decimal(int(n[0])) + 1,
}


def plain(program):
    def run(x, n):
        return program(x, x.array, n)
    return run


def in_if(program):
    def run(x, n):
        if n[3] > 1:
            y = program(x, x.array, n)
        else:
            y = program(x * 2, (x * 2).array, n)
        return y
    return run


def in_while(program):
    def run(x, n):
        i = 0
        kept = []
        while i < n[3]:
            program(x * (1 + i), x.array * (1 + i), n)
            i += 1
            x = x * 0.5
        return x, i, program(x, x.array, n)
    return run


def in_for(program):
    def run(x, n):
        total = 0.0
        for k in n:
            if k > 1:
                y = program(x, x.array * float(k), n)
                total = total + (float(y) if isinstance(y, (int, float, np.floating, np.integer)) else 1.0)
        return total
    return run


PLACES = {"plain": plain, "if": in_if, "while": in_while, "for": in_for}


def calls():
    return [lambda: (variable(3, seed=4), np.array([2, 3, 1, 2])), lambda: (variable(3, seed=5), np.array([1, 2, 3, 1])),
            lambda: (variable(3, seed=6, low=0.2), np.array([3, 3, 2, 0]))]


#: Each program by itself and in one of the other places, in turn: all of them in all places take minutes.
SAMPLE = [(name, place) for k, name in enumerate(PROGRAMS) for place in ("plain", [*PLACES][1 + k % (len(PLACES) - 1)])]


@pytest.mark.parametrize("name, place", SAMPLE)
def test_a_program(name, place):
    check(lambda compile: compile(PLACES[place](PROGRAMS[name])), calls(), rounds=2 if place == "plain" else 1)
