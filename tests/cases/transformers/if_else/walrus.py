# run: f(1); f(0); f(-1)
def f(x):
    if (y := x + 1) > 1:
        z = (w := y) + w
    elif y:
        z = [(v := i) for i in range(3)]
        z.append(v)
    else:
        z = y
    return y, z
# after
def f(x):

    def then_0(z, v, w):
        z = (w := y) + w
        return z, v

    def else_0(z, v, w):

        def then_1(z, v):
            z = [(v := i) for i in range(3)]
            z.append(_dy.read(v))
            return z, v

        def else_1(z, v):
            z = y
            return z, v
        z, v = _dy.cond(y, then_1, else_1, (_dy.Undefined('z'), _dy.
            Undefined('v')), names=('z', 'v'))
        return z, v
    z, v = _dy.cond((y := x + 1) > 1, then_0, else_0, (_dy.Undefined('z'),
        _dy.Undefined('v'), _dy.Undefined('w')), names=('z', 'v', 'w'))
    return y, z
