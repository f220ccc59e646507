# run: f(1); f(-1)
def f(x):
    if x > 0:
        y = x
    y += log.append('never')or 1
    return y
# after
def f(x):

    def then_0(y):
        y = x
        return y,

    def else_0(y):
        return y,
    y, = _dy.cond(x > 0, then_0, else_0, (_dy.Undefined('y'),), names=('y',))
    _dy.read(y)
    y += log.append('never') or 1
    return y
