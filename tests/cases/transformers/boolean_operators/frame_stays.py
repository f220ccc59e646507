# run: f(1); f(0)
def f(x):
    return x and sorted(locals()), x or eval('x')
# after
def f(x):
    return x and sorted(locals()), x or eval('x')
