# run: f([1, -2, 3], 2)
def f(xs, n):
    late = [lambda: x for x in xs if x > 0]
    nested = [x + y for x in xs for y in xs if y > x]
    kept = [(last := x) for x in xs if x]
    lazy = [(x * y for y in xs) for x in xs if x > 1]
    parts = [x for x, *_ in [(1, 2)] if x]
    return [g() for g in late], nested, kept, last, [list(g) for g in lazy], parts, [x for x in xs]
# after
def f(xs, n):
    late = [(lambda : x) for x in xs if x > 0]
    nested = [(x + y) for x in xs for y in xs if y > x]
    kept = [(last := x) for x in xs if x]
    lazy = [(x * y for y in xs) for x in xs if x > 1]
    parts = [x for x, *_ in [(1, 2)] if x]
    return _dy.list_of(late, None, lambda g: g(), 0
        ), nested, kept, last, _dy.list_of(lazy, None, lambda g: list(g), 0
        ), parts, _dy.list_of(xs, None, lambda x: x, 0)
