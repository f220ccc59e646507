# run: f(1, [2]); f(-1, []); f(None, None)
def f(x, xs=None, *, scale=2):
    h = x
    if x is not None and x > 0 and xs:
        h = max(xs) * scale
        if not h:
            log.append('zero')
    elif xs is None or not x:
        y = [i for i in range(3) if i and i != x]
        h = len(y)
    return h if h else str(h)
# after
def f(x, xs=None, *, scale=2):
    h = x

    def then_0(h):
        h = _dy.call(max)(xs) * scale

        def then_1():
            _dy.call(log.append)('zero')
            return ()

        def else_1():
            return ()
        _dy.cond(_dy.not_(h), then_1, else_1, (), names=())
        return h,

    def else_0(h):

        def then_2(h):
            y = _dy.list_of(_dy.call(range)(3), lambda i: _dy.all_of(i, lambda
                : i != x), lambda i: i, 0)
            h = _dy.call(len)(y)
            return h,

        def else_2(h):
            return h,
        h, = _dy.cond(_dy.any_of(_dy.is_(xs, None), lambda : _dy.not_(x)),
            then_2, else_2, (h,), names=('h',))
        return h,
    h, = _dy.cond(_dy.all_of(_dy.is_not(x, None), lambda : x > 0, lambda :
        xs), then_0, else_0, (h,), names=('h',))
    return _dy.if_exp(h, lambda : h, lambda : _dy.call(str)(h))
