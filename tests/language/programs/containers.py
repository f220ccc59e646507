"""Items of lists, tuples and dicts."""
import chainer.functions as F
import numpy as np


def s(v):
    """The sum, as Python's number."""
    return float(v.array.sum())


def argmax(x, y, n):
    scores = [s(v) for v in (x, y)]
    return (x, y)[int(np.argmax(scores))]


def dict_count(x, y, n):
    d = {'pos': 0, 'neg': 0}
    for v in (x, y, x * y):
        d['pos' if s(v) > 0 else 'neg'] += 1
    return d


def key_text(x, y, n):
    d = {'a': x, 'b': y}
    k = 'a' if s(x) > 0 else 'b'
    return d[k]


def lst_index(x, y, n):
    h = [x, y]
    i = int(x.array.argmax()) % 2
    return h[i]


def i_list(x, y, n):
    h = [x, y, x * y]
    i = int(x.array.argmax())
    h[n % 3] = y * 2
    return (h[i], h[x.array.argmin()])


def i_fail(x, y, n):
    h = (x, y)
    i = int(x.array.argmax())
    return h[i] * 2


def i_neg(x, y, n):
    return [x, y, x + y][-int(x.array.argmax()) - 1]


def i_bool(x, y, n):
    return (x, y)[s(x) > 0]


def i_func(x, y, n):
    return [F.relu, F.tanh, F.sigmoid][int(x.array.argmax())](y)


def i_text(x, y, n):
    print(['a', 'b', 'c'][int(x.array.argmax())])
    return x


def i_loop(x, y, n):
    w = [x, y, x - y]
    h = x
    k = 0
    path = []
    while s(h) < 1 and k < 4:
        h = h * 0.5 + w[int(h.array.argmax())]
        k += 1
    return (h, k)


def i_sum(x, y, n):
    c = [0, 0, 0]
    return c[int(x.array.argmax())] + n


def del_items(x, y, n):
    d = {'a': x, 'b': y}
    if s(x) > 0:
        del d['a']
    return (list(d), d['b'])


def slice_obj(x, y, n):
    k = 2 if s(x) > 0 else 1
    return x[:k]


def counter_dict(x, y, n):
    d = {}
    for v in (x, y):
        k = int(s(v) > 0)
        d[k] = d.get(k, 0) + 1
    return d


def aug_slice(x, y, n):
    a = x.array.copy()
    if a[0] > 0:
        a[1:] += 1
    else:
        a[:2] *= 2
    return y * a


def set_member(x, y, n):
    seen = set()
    for v in (x, y):
        if s(v) > 0:
            seen.add('p')
    return (len(seen), x)


def beam(x, y, n):
    beams = [(0.0, x)]
    for i in range(2):
        new = []
        for score, v in beams:
            for w in (v * 2, v - y):
                new.append((score + s(w), w))
        new.sort(key=lambda t: -t[0])
        beams = new[:2]
    return beams[0][1]


def str_build(x, y, n):
    t = 'p' if s(x) > 0 else 'n'
    t += 'x'
    print(f'sign {t}')
    return x


def d_bool(x, y, n):
    name = {True: 'up', False: 'down'}[s(x) > 0]
    return x if name == 'up' else y


def d_int(x, y, n):
    table = {0: x, 1: y, 5: x * y}
    return table[int(x.array.argmax())] * 2


def d_values(x, y, n):
    table = {0: x, 1: y, 2: x * y, 'other': x}
    table[1] = x - y
    return table[int(x.array.argmax())] * table[n % 2]
