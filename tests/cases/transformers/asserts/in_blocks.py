# run: f(1); f(0); f(-1)
def f(x):
    try:
        if x:
            y = 1
            assert x > 0, y
    except AssertionError as e:
        return repr(e)
    return x
# after
def f(x):
    try:

        def then_0():
            y = 1
            _dy.assert_(x > 0, lambda : y)
            return ()

        def else_0():
            return ()
        _dy.cond(x, then_0, else_0, (), names=())
    except AssertionError as e:
        return repr(e)
    return x
