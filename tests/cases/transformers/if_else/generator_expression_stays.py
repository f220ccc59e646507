# run: f(3); f(0)
def f(n):
    g = ()
    m = 0
    if n:
        g = (m * i for i in range(n))
        m = 2
    return list(g)
# after
def f(n):
    g = ()
    m = 0
    if n:
        g = (m * i for i in range(n))
        m = 2
    return list(g)
