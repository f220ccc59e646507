# run: f(3)
def f(x):
    y = eval('x') + len(locals()) + len(vars(f)) + len(dir())
    exec('y')
    return y, 'f' in globals(), sorted(vars())
# after
def f(x):
    y = eval('x') + len(locals()) + len(vars(f)) + len(dir())
    exec('y')
    return y, 'f' in globals(), sorted(vars())
