# run: f(1); f(0, 2, 3, k=4)
def f(a, /, b=1, *c, d=2, **e):
    if a:
        a, b, c, d, e = e, d, c, b, a
    return a, b, c, d, e
# after
def f(a, /, b=1, *c, d=2, **e):

    def then_0(a, b, c, d, e):
        a, b, c, d, e = e, d, c, b, a
        return a, b, c, d, e

    def else_0(a, b, c, d, e):
        return a, b, c, d, e
    a, b, c, d, e = _dy.cond(a, then_0, else_0, (a, b, c, d, e), names=('a',
        'b', 'c', 'd', 'e'))
    return a, b, c, d, e
