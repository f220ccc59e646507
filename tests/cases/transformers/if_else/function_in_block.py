# run: f(2); f(0)
def f(x):
    if x:

        def g(y):
            if y > 1:
                y = 0
            return y + x
    else:
        g = str
    return g(x)
# after
def f(x):

    def then_0(g):

        def g(y):

            def then_1(y):
                y = 0
                return y,

            def else_1(y):
                return y,
            y, = _dy.cond(y > 1, then_1, else_1, (y,), names=('y',))
            return y + x
        return g,

    def else_0(g):
        g = str
        return g,
    g, = _dy.cond(x, then_0, else_0, (_dy.Undefined('g'),), names=('g',))
    return g(x)
