# run: f(iter([1, 2, 3])); f(iter([])); f(iter([5, 2]))
def f(xs):
    for x in xs:
        if x == 2:
            break
        log.append(x)
    else:
        log.append('else')
    return list(xs)
# after
def f(xs):
    did_break_0 = False

    def body_0(x, did_break_0):
        if x == 2:
            did_break_0 = True
        else:
            log.append(x)
        return did_break_0,
    did_break_0, = _dy.for_(xs, body_0, (did_break_0,), names=(
        'did_break_0',), stop=lambda did_break_0: did_break_0)
    if not did_break_0:
        log.append('else')
    return list(xs)
