# run: f([1, 0, 2]); f([1, 2]); f([])
def f(xs):
    y = 0
    z = 0
    try:
        for x in xs:
            z = 1 / x
        for x in xs:
            y += 1 / (x - 2)
    except ZeroDivisionError:
        log.append(y)
    return z
# after
def f(xs):
    y = 0
    z = 0
    try:

        def body_0(x):
            nonlocal z
            z = 1 / x
            return ()
        _dy.for_(xs, body_0, (), names=())

        def body_1(x):
            nonlocal y
            y += 1 / (x - 2)
            return ()
        _dy.for_(xs, body_1, (), names=())
    except ZeroDivisionError:
        log.append(y)
    return z
