# run: f([0, 1, [], [2]])
def f(xs):
    for x in xs:
        if not x:
            continue
        log.append(x)
    return xs
# after
def f(xs):
    for x in xs:
        if x:
            log.append(x)
    return xs
