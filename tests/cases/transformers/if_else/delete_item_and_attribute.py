# run: f({1: 2}); f({})
def f(d):
    if d:
        del d[1]
    return d
# after
def f(d):

    def then_0():
        del d[1]
        return ()

    def else_0():
        return ()
    _dy.cond(d, then_0, else_0, (), names=())
    return d
