# run: f(1); f(0)
def f(x):
    return x and (y := x + 1) and y, (z := x) or z
# after
def f(x):
    return x and (y := x + 1) and y, _dy.or_((z := x), lambda : z)
