# run: f([1]); f([])
def f(xs):
    for x in xs:
        y = x
        z = [y for x in xs]
    if xs:
        w = z
    return w
# after
def f(xs):
    z = _dy.Undefined('z')
    for x in xs:
        y = x
        z = [y for x in xs]
    if xs:
        w = _dy.read(z)
    return _dy.read(w)
