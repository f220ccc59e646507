# run: f(0); f(1); f(3)
def f(n):
    for i in range(n):
        if i == 0:
            h = 1
        else:
            h = h * 2
    return h
# after
def f(n):
    h = _dy.Undefined('h')
    for i in range(n):

        def then_0(h):
            h = 1
            return h,

        def else_0(h):
            h = _dy.read(h) * 2
            return h,
        h, = _dy.cond(i == 0, then_0, else_0, (h,), names=('h',))
    return _dy.read(h)
