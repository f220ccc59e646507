# run: f('1'); f('x'); f('')
def f(x):
    y = None
    try:
        int(x)
    except ValueError as e:
        if x:
            y = str(e)
    finally:
        if y:
            log.append(y)
            z = 1
        else:
            z = 2
    return z
# after
def f(x):
    y = None
    try:
        int(x)
    except ValueError as e:

        def then_0(y):
            y = str(e)
            return y,

        def else_0(y):
            return y,
        y, = _dy.cond(x, then_0, else_0, (y,), names=('y',))
    finally:

        def then_1(z):
            log.append(y)
            z = 1
            return z,

        def else_1(z):
            z = 2
            return z,
        z, = _dy.cond(y, then_1, else_1, (_dy.Undefined('z'),), names=('z',))
    return z
