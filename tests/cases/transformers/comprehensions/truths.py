# run: f([1, -2, 3], 2); f([], 1)
def f(xs, n):
    found = any(x > n for x in xs), all(i < x for i, x in enumerate(xs) if x > 0)
    return found, all([x > 0 for x in xs]), any(x > y for x in xs for y in xs), max(x for x in (0, *xs))
# after
def f(xs, n):
    found = _dy.truth_of(any, xs, None, lambda x: x > n, 0), _dy.truth_of(all,
        _dy.items_of(enumerate, xs), lambda i, x: x > 0, lambda i, x: i < x, 2)
    return found, all(_dy.list_of(xs, None, lambda x: x > 0, 0)), any(x > y for
        x in xs for y in xs), max(x for x in (0, *xs))
