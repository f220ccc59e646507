# run: f([1, 2, 0, 3], 9); f([0], 9); f([1, 2, 3, 0], 2); f([5, 5, 5, 0], 9); g([[1], [], [2]])
def f(xs, stop):
    xs = list(xs)
    total = 0
    while (x := xs.pop(0)) and (total := total + x) < 12:
        if x == stop:
            break
        if x == 1:
            continue
        log.append(x)
    else:
        total = -total
    return x, xs, total
def g(xs):
    n = 0
    while last := xs[n]:
        last.clear()
        n += 1
    return n, last
# after
def f(xs, stop):
    xs = list(xs)
    total = 0
    again_0 = True
    while again_0:
        again_0 = (x := xs.pop(0))
        if again_0:
            again_0 = (total := total + x) < 12
        again_0 = not not again_0
        if again_0:
            if x == stop:
                break
            if x == 1:
                continue
            log.append(x)
    else:
        total = -total
    return x, xs, total
