# run: f({}, 1); f({}, 0)
def f(d, x):
    if x:
        d['x'] = x
        log.append(x)
    return d
# after
def f(d, x):

    def then_0():
        d['x'] = x
        log.append(x)
        return ()

    def else_0():
        return ()
    _dy.cond(x, then_0, else_0, (), names=())
    return d
