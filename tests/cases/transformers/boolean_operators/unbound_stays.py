# run: f(1); f(0)
def f(x):
    for i in range(x):
        pass
    return not x and i, i and not x
# after
def f(x):
    for i in range(x):
        pass
    return _dy.not_(x) and _dy.read(i), _dy.and_(_dy.read(i), lambda : _dy.
        not_(x))
