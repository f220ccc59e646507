"""Comprehensions, generators, and the builtins that take them."""
import chainer.functions as F


def s(v):
    """The sum, as Python's number."""
    return float(v.array.sum())


def filter_list(x, y, n):
    kept = [v for v in (x, y, x * y) if s(v) > 0]
    return len(kept)


def filter_stack(x, y, n):
    kept = [v for v in (x, y, x * y) if s(v) > -0.2]
    return F.sum(F.stack(kept)) if kept else y


def filter_sum(x, y, n):
    return sum((v for v in (x, y, x * y) if s(v) > 0))


def any_gen(x, y, n):
    if any((s(v) > 0.3 for v in (x, y, x * y, x - y))):
        return x
    return y


def all_list(x, y, n):
    if all([s(v) > -0.3 for v in (x, y, x * y, x - y)]):
        return x
    return y


def max_key(x, y, n):
    return max((x, y), key=s)


def sorted_key(x, y, n):
    return sorted((x, y, x * y), key=s)[0]


def gen_inside(x, y, n):

    def halves(v):
        while s(v) > 0.1:
            yield v
            v = v * 0.5
    out = y
    for v in halves(x):
        out = out + v
    return out


def gen_py(x, y, n):

    def steps(v):
        for i in range(n):
            v = F.tanh(v)
            yield v
    return sum(steps(x), y)
