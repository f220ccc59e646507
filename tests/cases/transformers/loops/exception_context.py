# run: f([1, 0]); f([])
def f(xs):
    try:
        for x in xs:
            log.append(1 / x)
    except ZeroDivisionError as e:
        log.append((e.__context__, e.__cause__))
        raise
# after
def f(xs):
    try:

        def body_0(x):
            log.append(1 / x)
            return ()
        _dy.for_(xs, body_0, (), names=())
    except ZeroDivisionError as e:
        log.append((e.__context__, e.__cause__))
        raise
