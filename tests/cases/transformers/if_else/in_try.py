# run: f('1'); f('x'); f('')
def f(x):
    y = None
    try:
        if x:
            y = int(x)
    except ValueError:
        log.append(y)
    return y
# after
def f(x):
    y = None
    try:

        def then_0(y):
            y = int(x)
            return y,

        def else_0(y):
            return y,
        y, = _dy.cond(x, then_0, else_0, (y,), names=('y',))
    except ValueError:
        log.append(y)
    return y
