# run: list(f(1)); list(f(0))
def f(x):
    y = (yield 1) if x else (yield 2)
    yield (y if (yield x) else x)
# after
def f(x):
    y = (yield 1) if x else (yield 2)
    yield _dy.if_exp((yield x), lambda : y, lambda : x)
