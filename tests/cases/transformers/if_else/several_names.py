# run: f(1, 2); f(2, 1)
def f(a, b):
    if a > b:
        a, b = b, a
        c = 1
    else:
        (c, *d), e = [2, 3], 4
    return a, b, c
# after
def f(a, b):

    def then_0(a, b, c):
        a, b = b, a
        c = 1
        return a, b, c

    def else_0(a, b, c):
        (c, *d), e = [2, 3], 4
        return a, b, c
    a, b, c = _dy.cond(a > b, then_0, else_0, (a, b, _dy.Undefined('c')),
        names=('a', 'b', 'c'))
    return a, b, c
