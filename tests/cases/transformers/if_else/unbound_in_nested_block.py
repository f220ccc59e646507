# run: f([]); f([1]); f([1, 2]); f([2, 1])
def f(xs):
    for x in xs:
        if len(xs) > 1:
            if x > 1:
                t = x
            if x == 1:
                log.append(t)
    return xs
# after
def f(xs):
    t = _dy.Undefined('t')
    for x in xs:

        def then_0(t):

            def then_1(t):
                t = x
                return t,

            def else_1(t):
                return t,
            t, = _dy.cond(x > 1, then_1, else_1, (t,), names=('t',))

            def then_2():
                log.append(_dy.read(t))
                return ()

            def else_2():
                return ()
            _dy.cond(x == 1, then_2, else_2, (), names=())
            return t,

        def else_0(t):
            return t,
        t, = _dy.cond(len(xs) > 1, then_0, else_0, (t,), names=('t',))
    return xs
