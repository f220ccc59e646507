# run: f(1); f(0)
def f(x):
    if x:
        y = 1
    return sorted(locals())
# after
def f(x):
    if x:
        y = 1
    return sorted(locals())
