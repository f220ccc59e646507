# run: f(1); f(-1)
def f(x):
    if x > 0:
        raise ValueError(x)
    return x
# after
def f(x):

    def then_0():
        raise ValueError(x)

    def else_0():
        return ()
    _dy.cond(x > 0, then_0, else_0, (), names=())
    return x
