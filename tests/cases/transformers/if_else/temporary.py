# run: f(1); f(-1)
def f(x):
    if x > 0:
        t = x * 2
        t += 1
        x = t
    return x
# after
def f(x):

    def then_0(x):
        t = x * 2
        t += 1
        x = t
        return x,

    def else_0(x):
        return x,
    x, = _dy.cond(x > 0, then_0, else_0, (x,), names=('x',))
    return x
