# run: f(1); f(0)
def f(x):
    if x:
        return x
        y = 1
    return len([lambda: y])
# after
def f(x):
    if x:
        return x
        y = 1
    return len([lambda : y])
