# run: f('1'); f('x'); f('')
def f(x):
    y = None
    try:
        if x:
            y = x
            y = int(y)
    except ValueError:
        log.append(y)
    return y
# after
def f(x):
    y = None
    try:

        def then_0():
            nonlocal y
            y = x
            y = int(y)
            return ()

        def else_0():
            nonlocal y
            return ()
        _dy.cond(x, then_0, else_0, (), names=())
    except ValueError:
        log.append(y)
    return y
