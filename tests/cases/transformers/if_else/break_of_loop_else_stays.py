# run: f([1], []); f([1], [2])
def f(xs, ys):
    for x in xs:
        if x:
            for y in ys:
                log.append(y)
            else:
                break
    return x
# after
def f(xs, ys):
    for x in xs:
        if x:
            for y in ys:
                log.append(y)
            else:
                break
    return x
