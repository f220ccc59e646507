# run: f([1, 2]); f([]); f([0, 1])
def f(xs):
    for x in xs:
        if x:
            last = x
        log.append(last)
    return last
# after
def f(xs):
    last = _dy.Undefined('last')

    def body_0(x, last):
        if x:
            last = x
        log.append(_dy.read(last))
        return last,
    last, = _dy.for_(xs, body_0, (last,), names=('last',))
    return _dy.read(last)
