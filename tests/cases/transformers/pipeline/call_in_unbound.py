# run: f(1); f(0)
def f(x):
    if x:
        g = str
    return g(x) and not g
# after
def f(x):

    def then_0(g):
        g = str
        return g,

    def else_0(g):
        return g,
    g, = _dy.cond(x, then_0, else_0, (_dy.Undefined('g'),), names=('g',))
    return _dy.and_(_dy.call(_dy.read(g))(x), lambda : _dy.not_(_dy.read(g)))
