# run: f(1); f(0)
def f(x):
    """What it does."""
    for i in range(x):
        if i == 0:
            y = i
    return y
# after
def f(x):
    """What it does."""
    y = _dy.Undefined('y')
    for i in range(x):

        def then_0(y):
            y = i
            return y,

        def else_0(y):
            return y,
        y, = _dy.cond(i == 0, then_0, else_0, (y,), names=('y',))
    return _dy.read(y)
