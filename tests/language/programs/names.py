"""Names that are bound somewhere only, deleted, or rebound to another type."""


def s(v):
    """The sum, as Python's number."""
    return float(v.array.sum())


def one_branch(x, y, n):
    if s(x) > 0:
        z = x * 2
    if s(x) > 0:
        return z
    return y


def one_branch_unread(x, y, n):
    if s(x) > 0:
        z = x * 2
    return y


def unbound(x, y, n):
    if s(x) > 0:
        z = x * 2
    return z + y


def loop_only(x, y, n):
    k = 0
    while s(x) > 0 and k < 3:
        z = x * k
        x = x - 0.2
        k += 1
    return (z, k)


def loop_var_after(x, y, n):
    for i in range(5):
        if s(x) > 0.5:
            break
        x = x + 0.2
    return (x * i, i)


def loop_var_after_empty(x, y, n):
    for i in range(n):
        x = x * 2
    return (x, i)


def deleted(x, y, n):
    z = x * 2
    if s(x) > 0:
        del z
    return z


def deleted_loop(x, y, n):
    k = 0
    while s(x) > 0 and k < 3:
        z = x * 0.5
        x = z - 0.1
        del z
        k += 1
    return (x, k)


def retyped(x, y, n):
    z = 1
    if s(x) > 0:
        z = x
    return y * z


def retyped_return(x, y, n):
    z = 1
    if s(x) > 0:
        z = x
    return z


def int_float(x, y, n):
    z = 1
    if s(x) > 0:
        z = 1.5
    return (z, y * z)


def none_before(x, y, n):
    z = None
    for v in (x, y, x):
        if s(v) > 0:
            z = v if z is None else z + v
    return z


def none_while(x, y, n):
    h, k = (None, 0)
    while k < 3 and (h is None or s(h) < 1):
        h = x if h is None else h + y
        k += 1
    return (h, k)


def none_array(x, y, n):
    m = None
    while m is None or m < 0.5:
        m = s(x) if m is None else m + 0.3
    return (m, y)


def best(x, y, n):
    best, where = (None, -1)
    for i, v in enumerate((x, y, x * y)):
        score = s(v)
        if best is None or score > best:
            best, where = (score, i)
    return (best, where)


def tern_none(x, y, n):
    m = x if s(x) > 0 else None
    return y if m is None else m + y


def swap(x, y, n):
    if s(x) < s(y):
        x, y = (y, x)
    return x - y


def early_none(x, y, n):
    if s(x) > 0:
        return
    return x


def multi_ret(x, y, n):
    if s(x) > 0.5:
        return x
    if s(x) > 0:
        return (x, y)
    return None


def is_and(x, y, n):
    m = None
    if s(x) > 0:
        m = y
    if m is not None and s(m) > 0:
        return m * 2
    return x


def str_cmp(x, y, n):
    mode = 'pos' if s(x) > 0 else 'neg'
    if mode == 'pos':
        return x
    elif mode == 'neg':
        return y


def list_rebind(x, y, n):
    h = []
    if s(x) > 0:
        h = [x]
    h.append(y)
    return h


def return_of_tuple_in_range(x, y, n):
    for i in range(1000):
        x = x * 0.9
        if s(abs(x)) < 0.1:
            return (x, i)
    return (y, -1)


def return_of_parts_in_while(x, y, n):
    k = 0
    while True:
        x = x * 0.9
        k += 1
        if s(abs(x)) < 0.1:
            return (x, (k, s(x)), 'text', None)


def tuple_bound_in_while(x, y, n):
    k = 0
    while k < 100:
        x = x * 0.9
        k += 1
        if s(abs(x)) < 0.1:
            t = (x, k)
        if s(abs(x)) < 0.01:
            return t
    return x


def last_of_while(x, y, n):
    k = 0
    while s(abs(x)) > 0.1:
        x = x * 0.9
        k += 1
        last = (x, k, y)
    return last
