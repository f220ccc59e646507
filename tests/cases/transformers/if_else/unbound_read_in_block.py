# run: f([1, 2]); f([]); f([0, 1])
def f(xs):
    for x in xs:
        y = x
        if y:
            z = y
    if xs:
        log.append(y)
        log.append(z)
    return z
# after
def f(xs):
    y = _dy.Undefined('y')
    z = _dy.Undefined('z')
    for x in xs:
        y = x

        def then_0(z):
            z = y
            return z,

        def else_0(z):
            return z,
        z, = _dy.cond(y, then_0, else_0, (z,), names=('z',))

    def then_1():
        log.append(_dy.read(y))
        log.append(_dy.read(z))
        return ()

    def else_1():
        return ()
    _dy.cond(xs, then_1, else_1, (), names=())
    return _dy.read(z)
