# run: f(1); f(0)
def f(x):
    if log.append('test') or x:
        pass
    else:
        log.append('else')
    return x
# after
def f(x):

    def then_0():
        pass
        return ()

    def else_0():
        log.append('else')
        return ()
    _dy.cond(log.append('test') or x, then_0, else_0, (), names=())
    return x
