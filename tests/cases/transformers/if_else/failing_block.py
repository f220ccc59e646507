# run: f(1); f(0)
def f(x):
    y = 2
    if x:
        y = 1
    else:
        y = [
            1,
            y / x]
    return y
# after
def f(x):
    y = 2

    def then_0(y):
        y = 1
        return y,

    def else_0(y):
        y = [1, y / x]
        return y,
    y, = _dy.cond(x, then_0, else_0, (y,), names=('y',))
    return y
