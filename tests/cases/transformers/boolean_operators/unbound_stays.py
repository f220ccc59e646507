# run: f(1); f(0)
def f(x):
    for i in range(x):
        pass
    return not x and i, i and not x
# after
def f(x):
    for i in range(x):
        pass
    return _dy.not_(x) and i, _dy.and_(i, lambda : _dy.not_(x))
