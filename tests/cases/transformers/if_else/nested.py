# run: f(1, 1); f(1, -1); f(-1, 1); f(-1, -1)
def f(a, b):
    if a > 0:
        if b > 0:
            c = 1
        else:
            c = 2
    else:
        c = 3
        if b > 0:
            c = c + 1
    return c
# after
def f(a, b):

    def then_0(c):

        def then_1(c):
            c = 1
            return c,

        def else_1(c):
            c = 2
            return c,
        c, = _dy.cond(b > 0, then_1, else_1, (_dy.Undefined('c'),), names=(
            'c',))
        return c,

    def else_0(c):
        c = 3

        def then_2(c):
            c = c + 1
            return c,

        def else_2(c):
            return c,
        c, = _dy.cond(b > 0, then_2, else_2, (c,), names=('c',))
        return c,
    c, = _dy.cond(a > 0, then_0, else_0, (_dy.Undefined('c'),), names=('c',))
    return c
