# run: f([1, 2])
def f(x):
    list(x)[0] = 1
    x[int('0')] += len(x)
    for x[len('a')] in range(2):
        pass
    del x[int(1)]
    return x
# after
def f(x):
    _dy.call(list)(x)[0] = 1
    x[_dy.call(int)('0')] += _dy.call(len)(x)
    for x[_dy.call(len)('a')] in _dy.call(range)(2):
        pass
    del x[_dy.call(int)(1)]
    return x
