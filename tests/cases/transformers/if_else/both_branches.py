# run: f(1); f(-1)
def f(x):
    if x > 0:
        y = x
    else:
        y = -x
    return y
# after
def f(x):

    def then_0(y):
        y = x
        return y,

    def else_0(y):
        y = -x
        return y,
    y, = _dy.cond(x > 0, then_0, else_0, (_dy.Undefined('y'),), names=('y',))
    return y
