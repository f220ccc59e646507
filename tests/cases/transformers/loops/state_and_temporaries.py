# run: f([1, 2, 3]); f([])
def f(xs):
    low, high = 0, 0
    t = 'dead'
    for x in xs:
        t = x * 2
        if t > high:
            high, s = t, x
        else:
            s = low
        low = low + s
    return low, high
# after
def f(xs):
    low, high = 0, 0
    t = 'dead'

    def body_0(x, high, low):
        t = x * 2
        if t > high:
            high, s = t, x
        else:
            s = low
        low = low + s
        return high, low
    high, low = _dy.for_(xs, body_0, (high, low), names=('high', 'low'))
    return low, high
