# run: f('1'); f('x'); f('')
def f(x):
    if x:
        try:
            y = int(x)
        except ValueError as e:
            y = str(e)
        else:
            y += 1
        finally:
            log.append(x)
    else:
        y = 0
    return y
# after
def f(x):

    def then_0(y):
        try:
            y = int(x)
        except ValueError as e:
            y = str(e)
        else:
            y += 1
        finally:
            log.append(x)
        return y,

    def else_0(y):
        y = 0
        return y,
    y, = _dy.cond(x, then_0, else_0, (_dy.Undefined('y'),), names=('y',))
    return y
