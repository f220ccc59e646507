# run: f(1); f(0)
def f(x):
    n = 0

    def g(y):
        nonlocal n
        if y:
            n += 1
        if n:
            y = n
        return y
    return g(x), g(x), n
# after
def f(x):
    n = 0

    def g(y):
        nonlocal n
        if y:
            n += 1

        def then_0(y):
            y = n
            return y,

        def else_0(y):
            return y,
        y, = _dy.cond(n, then_0, else_0, (y,), names=('y',))
        return y
    return g(x), g(x), n
