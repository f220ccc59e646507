# run: f(1); f(0); f(-1)
def f(x):
    if x > 0:
        y = 'positive'
    elif x == 0:
        y = 'zero'
    else:
        y = 'negative'
    return y
# after
def f(x):

    def then_0(y):
        y = 'positive'
        return y,

    def else_0(y):

        def then_1(y):
            y = 'zero'
            return y,

        def else_1(y):
            y = 'negative'
            return y,
        y, = _dy.cond(x == 0, then_1, else_1, (_dy.Undefined('y'),), names=
            ('y',))
        return y,
    y, = _dy.cond(x > 0, then_0, else_0, (_dy.Undefined('y'),), names=('y',))
    return y
