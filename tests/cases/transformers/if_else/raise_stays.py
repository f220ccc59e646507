# run: f(1); f(-1)
def f(x):
    if x > 0:
        raise ValueError(x)
    return x
# after
def f(x):
    if x > 0:
        raise ValueError(x)
    return x
