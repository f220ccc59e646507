# run: f(2); f(0)
def f(n):
    fs = []
    for i in range(n):
        k = i
        if i or n:
            m = i * 2
            fs.append(lambda a=m: (a, i, k, n and k))
    return [g() for g in fs]
# after
def f(n):
    i: None
    k: None
    fs = _dy.list_([])

    def body_0(item_0):
        nonlocal i, k
        i = item_0
        k = i

        def then_0():
            m = i * 2
            _dy.call(fs.append)(lambda a=m: (a, i, k, _dy.and_(n, lambda : k)))
            return ()

        def else_0():
            return ()
        _dy.cond(_dy.any_of(i, lambda : n), then_0, else_0, (), names=())
        return ()
    _dy.for_(_dy.call(range)(n), body_0, (), names=())
    return _dy.list_of(fs, None, lambda g: _dy.call(g)(), 0)
