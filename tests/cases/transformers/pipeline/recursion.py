# run: f(5)
def f(n):
    if n > 1:
        r = n * f(n - 1)
    else:
        r = 1
    return r
# after
def f(n):

    def then_0(r):
        r = n * _dy.call(f)(n - 1)
        return r,

    def else_0(r):
        r = 1
        return r,
    r, = _dy.cond(n > 1, then_0, else_0, (_dy.Undefined('r'),), names=('r',))
    return r
