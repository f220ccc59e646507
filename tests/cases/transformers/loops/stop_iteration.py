# run: f([1]); f([])
def f(xs):
    ys = iter([])
    for x in xs:
        next(ys)
    return 1
# after
def f(xs):
    ys = iter([])

    def body_0(x):
        next(ys)
        return ()
    _dy.for_(xs, body_0, (), names=())
    return 1
