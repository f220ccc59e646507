# run: f(1); f(0); f(-1)
def f(x):
    if (y := x + 1) > 1:
        z = (w := y) + w
    elif y:
        z = [(v := i) for i in range(3)]
        z.append(v)
    else:
        z = y
    return y, z
# after
def f(x):
    if (y := x + 1) > 1:
        z = (w := y) + w
    elif y:
        z = [(v := i) for i in range(3)]
        z.append(v)
    else:
        z = y
    return y, z
