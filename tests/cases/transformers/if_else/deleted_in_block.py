# run: f(1); f(-1)
def f(x):
    y = 1
    if x > 0:
        del y
    return y
# after
def f(x):
    y = 1
    if x > 0:
        del y
    return y
