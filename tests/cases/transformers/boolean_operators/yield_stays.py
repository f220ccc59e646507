# run: list(f(1)); list(f(0))
def f(x):
    y = x and (yield x)
    yield not y
# after
def f(x):
    y = x and (yield x)
    yield _dy.not_(y)
