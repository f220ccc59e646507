# run: f(1); f(0)
counter = 0


def f(x):
    global counter
    if x:
        counter += 1
    if counter:
        y = counter
    else:
        y = 0
    return y
# after
def f(x):
    global counter
    if x:
        counter += 1

    def then_0(y):
        y = counter
        return y,

    def else_0(y):
        y = 0
        return y,
    y, = _dy.cond(counter, then_0, else_0, (_dy.Undefined('y'),), names=('y',))
    return y
