# run: f(1, abs, str); f(0, abs, str); f(2, abs, str)
def f(x, g, h):
    y = (g if x else h)(x), (x and g or h)(x)
    if x:
        k = g
    return y, [g, h][x](-1), k(y)
# after
def f(x, g, h):
    y = _dy.call(_dy.if_exp(x, lambda : g, lambda : h))(x), _dy.call(_dy.
        or_(_dy.and_(x, lambda : g), lambda : h))(x)

    def then_0(k):
        k = g
        return k,

    def else_0(k):
        return k,
    k, = _dy.cond(x, then_0, else_0, (_dy.Undefined('k'),), names=('k',))
    return y, _dy.call(_dy.item([g, h], x))(-1), _dy.call(_dy.read(k))(y)
