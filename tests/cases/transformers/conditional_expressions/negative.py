# run: f(1); f(-1); f('a')
def f(x):
    return x if x > 0 else -x
# after
def f(x):
    return _dy.if_exp(x > 0, lambda : x, lambda : -x)
