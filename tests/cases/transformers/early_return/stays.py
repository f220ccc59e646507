# run: f('1'); f('x'); f("")
def f(x):
    if not x:
        return x
    try:
        return int(x)
    except ValueError:
        pass
# after
def f(x):
    if not x:
        return x
    try:
        return int(x)
    except ValueError:
        pass
