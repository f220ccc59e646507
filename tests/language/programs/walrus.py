"""Names bound inside expressions."""


def s(v):
    """The sum, as Python's number."""
    return float(v.array.sum())


def walrus_and(x, y, n):
    if (a := s(x)) > 0 and (b := s(y)) > 0:
        return x * a + y * b
    return y * a


def walrus_listcomp(x, y, n):
    r = [t for v in (x, y) if (t := (v * 2)) is not None]
    return r[0] + t


def walrus_while_pop(x, y, n):
    q = [x, y, x * y]
    h = y
    while q and s((v := q.pop())) < 0.5:
        h = h + v
    return (h, len(q))


def w_newton(x, y, n):
    k = 0
    while (err := abs(s(x))) > 0.1 and k < 20:
        x = x * 0.7
        k += 1
    return (x, k, err)


def w_nested(x, y, n):
    c = 0
    for i in range(3):
        k = 0
        while (err := s(x)) > 0.1 and (k := (k + 1)) < 9:
            x = x * 0.7
            c += 1
    return (x, c, err)
