"""Functions inside, recursion, functions as values."""
import chainer.functions as F


def s(v):
    """The sum, as Python's number."""
    return float(v.array.sum())


def recursion_py(x, y, n):

    def go(v, k):
        return v if k == 0 else go(F.tanh(v), k - 1)
    return go(x, n)


def fact(x, k):
    return x if k <= 0 else x * fact(x, k - 1)


def recursion_global(x, y, n):
    return fact(x, n)


def rec_array(v, k):
    if k > 4 or s(v) < 0.1:
        return v
    return rec_array(v * 0.5, k + 1)


def recursion_array(x, y, n):
    return rec_array(x, 0)


def nonlocal_count(x, y, n):
    c = 0

    def hit(v):
        nonlocal c
        if s(v) > 0:
            c += 1
        return v * c
    return (hit(x) + hit(y), c)


def lambda_if(x, y, n):
    act = (lambda v: F.relu(v)) if s(x) > 0 else lambda v: F.tanh(v)
    return act(y)


def func_choice(x, y, n):
    act = F.relu if s(x) > 0 else F.tanh
    return act(y)


def deco_cache(x, y, n):
    cache = {}

    def get(k):
        if k not in cache:
            cache[k] = x * k
        return cache[k]
    return get(1) + get(1) * get(2)


def star_call(x, y, n):
    args = (x, y) if s(x) > 0 else (y, x)
    return F.linear_interpolate(x, *args)
