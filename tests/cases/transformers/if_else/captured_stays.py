# run: f(1); f(0)
def f(x):
    y = 0
    g = lambda: y
    if x:
        y = 1
    return g()
# after
def f(x):
    y = 0
    g = lambda : y
    if x:
        y = 1
    return g()
