# run: f([]); f([0]); f(None)
def f(x):
    if x:
        y = 'true'
    else:
        y = 'false'
    return y
# after
def f(x):

    def then_0(y):
        y = 'true'
        return y,

    def else_0(y):
        y = 'false'
        return y,
    y, = _dy.cond(x, then_0, else_0, (_dy.Undefined('y'),), names=('y',))
    return y
