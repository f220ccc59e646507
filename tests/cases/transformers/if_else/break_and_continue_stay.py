# run: f([1, 2, 3, 9, 4]); f([])
def f(xs):
    s = 0
    for x in xs:
        if x == 2:
            continue
        if x > 5:
            s = -s
            break
        if x:
            s += x
    return s
# after
def f(xs):
    s = 0
    for x in xs:
        if x == 2:
            continue
        if x > 5:
            s = -s
            break

        def then_0(s):
            s += x
            return s,

        def else_0(s):
            return s,
        s, = _dy.cond(x, then_0, else_0, (s,), names=('s',))
    return s
