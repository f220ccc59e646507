# run: f(1); f(0)
def f(x, then_0=3):
    if x:
        y = then_0
    else:
        y = 0

    def else_1():
        return y
    if y:
        x = else_1()
    return x
# after
def f(x, then_0=3):
    if x:
        y = then_0
    else:
        y = 0

    def else_1():
        return y

    def then_2(x):
        x = else_1()
        return x,

    def else_2(x):
        return x,
    x, = _dy.cond(y, then_2, else_2, (x,), names=('x',))
    return x
