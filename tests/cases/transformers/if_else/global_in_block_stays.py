# run: f(1); f(0)
def f(x):
    if x:
        global other
        other = x
    return x
# after
def f(x):
    if x:
        global other
        other = x
    return x
