# run: f([1, 2]); f([])
def f(xs):
    for x in xs:
        x = x + 1
    return x
# after
def f(xs):

    def body_0(item_0, x):
        x = item_0
        x = x + 1
        return x,
    x, = _dy.for_(xs, body_0, (_dy.Undefined('x'),), names=('x',))
    return _dy.read(x)
