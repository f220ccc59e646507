# run: f(1, 0); f(0, 0); f(1, 1)
def f(a, b):
    if a and not b:
        c = a or b
    return c and a
# after
def f(a, b):

    def then_0(c):
        c = _dy.or_(a, lambda : b)
        return c,

    def else_0(c):
        return c,
    c, = _dy.cond(_dy.all_of(a, lambda : _dy.not_(b)), then_0, else_0, (_dy
        .Undefined('c'),), names=('c',))
    return _dy.and_(_dy.read(c), lambda : a)
