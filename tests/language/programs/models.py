"""Small pieces as models have them, several constructs at a time."""
import chainer


def s(v):
    """The sum, as Python's number."""
    return float(v.array.sum())


def kept_in_dict(x, y, n):
    d = {}
    for k, v in (('a', x), ('b', y)):
        if s(v) > 0:
            d[k] = v
    return d


def more_outputs(x, y, n):
    out = {'loss': x}
    if s(x) > 0:
        out['extra'] = y
    return out


def edited_list(x, y, n):
    xs = [x, y]
    if s(x) > 0:
        xs.insert(0, y)
    if s(y) > 0:
        xs.pop()
    xs.extend([x])
    xs.remove(xs[0]) if False else None
    return (xs[0], len(xs))


def try_in_loop(x, y, n):
    for v in (x, y):
        try:
            if s(v) < 0:
                continue
            if s(v) > 1:
                break
            x = x + v
        finally:
            n += 1
    return (x, n)


def return_in_with(x, y, n):
    with chainer.using_config('train', False):
        for k in range(5):
            if s(x) > 0.5:
                return (x, k)
            x = x + 0.2
    return (y, -1)


def loops_in_loops(x, y, n):
    t = 0
    for i in range(3):
        for j in range(3):
            if x.array[i] > y.array[j]:
                t += 1
                continue
            if x.array[i] < -0.5:
                break
        else:
            t += 10
    return t


def masks(x, y, n):
    p = x.array > 0
    if p.any() and (not p.all()):
        return x * 2
    if p.all():
        return y
    return x


def positions(x, y, n):
    r = [i for i, a in enumerate(x.array) if a > 0]
    return (len(r), x)


def sorted_numbers(x, y, n):
    a, b = sorted([s(x), s(y)])
    return x * a + y * b


def best_place(x, y, n):
    best = max(range(3), key=lambda i: x.array[i])
    return (best, y)


def accumulate(x, y, n):
    acc = None
    for i in range(10):
        t = x * i
        acc = t if acc is None else acc + t
        if s(acc) > 2:
            break
    else:
        i = -1
    return (acc, i)


def class_inside(x, y, n):

    class Acc:

        def __init__(self):
            self.v, self.n = (0, 0)

        def add(self, v):
            if s(v) > 0:
                self.v = self.v + v
                self.n += 1
    a = Acc()
    for v in (x, y, x - y):
        a.add(v)
    return (a.v * y, a.n)


def texts(x, y, n):
    msg = 'big' if s(x) > 0.5 else 'mid' if s(x) > 0 else 'small'
    print(f'{msg:>6}|{s(x) > 0!s}')
    return (msg, x)


def continue_and_return(x, y, n):
    k = 0
    while k < 10:
        k += 1
        if k % 2:
            continue
        x = x * 0.9 + 0.1
        if s(x) > 1:
            return x
    return None


def iterator(x, y, n):
    it = iter([x, y, x * y])
    h = next(it)
    while (v := next(it, None)) is not None:
        if s(v) > 0:
            h = h + v
    return h


def mixed_tests(x, y, n):
    if s(x) > 0 and n > 1 or (s(y) > 0 and (not n)):
        x, y = (y, x)
    return x * 2 - y


def comprehensions(x, y, n):
    return ([v if s(v) > 0 else -v for v in (x, y)], {k: (v.array > 0).sum() for k, v in zip('ab', (x, y))})


def range_of_array(x, y, n):
    h = x
    for _ in range(int(abs(s(x)) * 5)):
        h = h * 0.9
    return h


def count(x, y, n):
    total = sum((1 for v in (x, y, x * y) if s(v) > 0))
    return x * total


def array_edited(x, y, n):
    z = x.array.copy()
    z[z < 0] = 0
    for i in range(3):
        if z[i] > 0.3:
            z[i] = 1
    return y * z
