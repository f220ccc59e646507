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
    did_break_0 = False
    for x in xs:

        def then_0(s, did_break_0):

            def then_1(s, did_break_0):
                s = -s
                did_break_0 = True
                return s, did_break_0

            def else_1(s, did_break_0):

                def then_2(s):
                    s += x
                    return s,

                def else_2(s):
                    return s,
                s, = _dy.cond(x, then_2, else_2, (s,), names=('s',))
                return s, did_break_0
            s, did_break_0 = _dy.cond(x > 5, then_1, else_1, (s,
                did_break_0), names=('s', 'did_break_0'))
            return s, did_break_0

        def else_0(s, did_break_0):
            return s, did_break_0
        s, did_break_0 = _dy.cond(not x == 2, then_0, else_0, (s,
            did_break_0), names=('s', 'did_break_0'))
        if did_break_0:
            break
    return s
