# run: f(3); f(0); f(-1)
def f(n):
    out = []
    for i in range(n):
        if i % 2 and not i == 3:
            try:
                with open('/dev/null') as g:
                    if g and i:
                        out.append(int('x'))
            except ValueError as e:
                out.append(str(e))
            else:
                out.append(i)
        elif i or n:
            k = sum(j for j in range(i))
            out.append(k)
    else:
        if n < 0 or n == 0:
            k = -1
    while out and out[-1]:
        last = out.pop()
        if last == 1:
            break
    return out, k
# after
def f(n):
    k = _dy.Undefined('k')
    out = _dy.list_([])

    def body_0(i, k):

        def then_0(k):
            try:
                with _dy.call(open)('/dev/null') as g:

                    def then_1():
                        _dy.call(out.append)(_dy.call(int)('x'))
                        return ()

                    def else_1():
                        return ()
                    _dy.cond(_dy.all_of(g, lambda : i), then_1, else_1, (),
                        names=())
            except ValueError as e:
                _dy.handled(e)
                _dy.call(out.append)(_dy.call(str)(e))
            else:
                _dy.call(out.append)(i)
            return k,

        def else_0(k):

            def then_2(k):
                k = _dy.call(sum)(j for j in _dy.call(range)(i))
                _dy.call(out.append)(k)
                return k,

            def else_2(k):
                return k,
            k, = _dy.cond(_dy.any_of(i, lambda : n), then_2, else_2, (k,),
                names=('k',))
            return k,
        k, = _dy.cond(_dy.all_of(i % 2, lambda : _dy.not_(i == 3)), then_0,
            else_0, (k,), names=('k',))
        return k,
    k, = _dy.for_(_dy.call(range)(n), body_0, (k,), names=('k',))

    def then_3(k):
        k = -1
        return k,

    def else_3(k):
        return k,
    k, = _dy.cond(_dy.any_of(n < 0, lambda : n == 0), then_3, else_3, (k,),
        names=('k',))
    did_break_0 = False

    def test_1(did_break_0):
        return _dy.all_of(_dy.not_(did_break_0), lambda : _dy.all_of(out, 
            lambda : out[-1]))

    def body_1(did_break_0):
        last = _dy.call(out.pop)()

        def then_4(did_break_0):
            did_break_0 = True
            return did_break_0,

        def else_4(did_break_0):
            return did_break_0,
        did_break_0, = _dy.cond(last == 1, then_4, else_4, (did_break_0,),
            names=('did_break_0',))
        return did_break_0,
    did_break_0, = _dy.while_(test_1, body_1, (did_break_0,), names=(
        'did_break_0',))
    return out, _dy.read(k)
