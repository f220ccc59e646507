# run: f(1); f(-1)
def f(x):
    if x > 0:
        return x
    if x < 0:
        x = -x
    return x
# after
def f(x):
    if x > 0:
        return x

    def then_0(x):
        x = -x
        return x,

    def else_0(x):
        return x,
    x, = _dy.cond(x < 0, then_0, else_0, (x,), names=('x',))
    return x
