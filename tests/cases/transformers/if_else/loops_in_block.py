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
        did_break_0 = False
        for i in range(n):

            def then_1(did_break_0, s):
                did_break_0 = True
                return did_break_0, s

            def else_1(did_break_0, s):
                s += i
                return did_break_0, s
            did_break_0, s = _dy.cond(i == 3, then_1, else_1, (did_break_0,
                s), names=('did_break_0', 's'))
            if did_break_0:
                break
        did_break_1 = False
        while not did_break_1:
            s += 1

            def then_2(did_break_1):
                did_break_1 = True
                return did_break_1,

            def else_2(did_break_1):
                return did_break_1,
            did_break_1, = _dy.cond(s > 6, then_2, else_2, (did_break_1,),
                names=('did_break_1',))

        def then_3(s):
            s = 0
            return s,

        def else_3(s):
            return s,
        s, = _dy.cond(not did_break_1, then_3, else_3, (s,), names=('s',))
        return s,

    def else_0(s):
        return s,
    s, = _dy.cond(n > 0, then_0, else_0, (s,), names=('s',))
    return s
