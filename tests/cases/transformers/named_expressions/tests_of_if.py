# run: f(0, 1); f(1, 0); f(2, 3); f(3, 1)
def note(x):
    log.append(x)
    return x
def f(x, y):
    if (a := note(x)) > 1 and (b := note(y)) > 1 or (a == 1 and (b := 5)):
        return a, b
    elif not (c := a) and note(7) and (d := y):
        return c, d
    if note(x) == 3 or (e := note(y)):
        return log
    return a, c, e
# after
def f(x, y):
    test_1 = (a := note(x)) > 1
    if test_1:
        test_1 = (b := note(y)) > 1
    if not test_1:
        test_1 = a == 1
        if test_1:
            test_1 = (b := 5)
    if test_1:
        return a, b
    else:
        test_0 = not (c := a)
        if test_0:
            test_0 = note(7)
        if test_0:
            test_0 = (d := y)
        if test_0:
            return c, d
    test_2 = note(x) == 3
    if not test_2:
        test_2 = (e := note(y))
    if test_2:
        return log
    return a, c, e
