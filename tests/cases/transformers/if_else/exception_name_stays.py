# run: f('x', 1); f('x', 0)
def f(x, n):
    e = 0
    if n:
        try:
            int(x)
        except ValueError as e:
            pass
    return e
# after
def f(x, n):
    e = 0
    if n:
        try:
            int(x)
        except ValueError as e:
            pass
    return e
