# run: f(1); f(0); f(-1); f([])
def f(x):
    assert x != 0
    assert x, f'empty {x}'
    assert x > 0, (x, log.append(x))
    return x
# after
def f(x):
    _dy.assert_(x != 0)
    _dy.assert_(x, lambda : f'empty {x}')
    _dy.assert_(x > 0, lambda : (x, log.append(x)))
    return x
