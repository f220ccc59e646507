# run: f(4); f(-1)
def f(n):
    s = 0
    if n > 0:
        for i in range(n):
            if i == 3:
                break
            s += i
        while True:
            s += 1
            if s > 6:
                break
        else:
            s = 0
    return s
# after
def f(n):
    s = 0

    def then_0(s):
        for i in range(n):
            if i == 3:
                break
            s += i
        while True:
            s += 1
            if s > 6:
                break
        else:
            s = 0
        return s,

    def else_0(s):
        return s,
    s, = _dy.cond(n > 0, then_0, else_0, (s,), names=('s',))
    return s
