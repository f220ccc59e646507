# run: f(1); f(0)
def f(x):
    if x and (y := x):
        x = y
    return y
# after
def f(x):
    y = _dy.Undefined('y')

    def then_0():
        x = _dy.read(y)
        return ()

    def else_0():
        return ()
    _dy.cond(x and (y := x), then_0, else_0, (), names=())
    return _dy.read(y)
