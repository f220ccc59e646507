"""Loops, try, with, assert."""
import chainer


def s(v):
    """The sum, as Python's number."""
    return float(v.array.sum())


def try_conv(x, y, n):
    try:
        if s(x) > 0:
            raise ValueError('pos')
        h = x
    except ValueError:
        h = y
    return h


def try_loop(x, y, n):
    k = 0
    try:
        while s(x) < 1 and k < 4:
            x = x + 0.2
            k += 1
    finally:
        k += 10
    return (x, k)


def with_loop(x, y, n):
    k = 0
    with chainer.using_config('train', False):
        while s(x) < 1 and k < 4:
            x = x + 0.2
            k += 1
    return (x, k)


def nobp_if(x, y, n):
    with chainer.no_backprop_mode():
        t = x * 2 if s(x) > 0 else y
    return t * x


def nested_loops(x, y, n):
    c = 0
    for i in range(2):
        j = 0
        while j < 3:
            if s(x) > 1:
                break
            x = x + 0.1 * i
            j += 1
            if s(x) < 0:
                continue
            c += 1
        else:
            c += 100
    return (x, c, i, j)


def chain(x, y, n):
    return x if -0.5 < s(x) < s(y) < 1 else y


def assert_msg(x, y, n):
    assert s(x) > -10, f'bad {s(x)}'
    return x


def while_not(x, y, n):
    done = False
    k = 0
    while not done:
        x = x * 0.5 + 0.1
        k += 1
        done = s(x) < 0.5 or k > 3
    return (x, k)


def for_zip_break(x, y, n):
    tot = 0
    for a, b in zip(x.array, y.array):
        if a > b:
            break
        tot += float(a * b)
    return tot


def for_arr_if(x, y, n):
    pos = 0.0
    for a in x.array:
        if a > 0:
            pos += a
        elif a < -0.5:
            pos -= 1
    return pos * y


def while_else(x, y, n):
    k = 0
    while k < 3:
        if s(x) > 0.5:
            break
        x = x + 0.3
        k += 1
    else:
        x = -x
    return (x, k)
