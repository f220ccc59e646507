# run: f([1, 2, 0, 3]); f([0])
def f(xs):
    xs = list(xs)
    while (x := xs.pop(0)):
        log.append(x)
    return x
# after
def f(xs):
    xs = list(xs)
    while (x := xs.pop(0)):
        log.append(x)
    return x
