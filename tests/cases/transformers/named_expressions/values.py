# run: f(0); f(1); f(2); g(0); g(1)
def f(x):
    y = (a := x + 1) if x else (b := 5)
    z = w = x and (a := x + 2)
    v = (x or (c := 3)) if y == 5 else 1
    u = [x and (d := x)]
    return (y, z, w, a) if x else (y, z, (b := b + 1), v, u)
def g(x):
    return x or (x := 4) and x + 1
# after
def f(x):
    if x:
        y = (a := x + 1)
    else:
        y = (b := 5)
    value_0 = x
    if value_0:
        value_0 = (a := x + 2)
    z = w = value_0
    if y == 5:
        value_1 = x
        if not value_1:
            value_1 = (c := 3)
        v = value_1
    else:
        v = 1
    u = [x and (d := x)]
    if x:
        return y, z, w, a
    else:
        return y, z, (b := b + 1), v, u
