# run: f(3); f(0)
def f(n):
    g = None
    if n:
        m = n + 1
        g = lambda: m
        m = n + 2
    return g and g()
# after
def f(n):
    g = None
    if n:
        m = n + 1
        g = lambda : m
        m = n + 2
    return g and g()
