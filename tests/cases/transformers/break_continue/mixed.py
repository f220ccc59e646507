# run: f([1, 2, 3, 4, 5]); f([3]); f([])
def f(xs):
    s = 0
    for x in xs:
        if x > 1:
            if x == 2:
                continue
            elif x == 4:
                break
            s += 1
        log.append(x)
        s += x
    else:
        s = -s
    return s
# after
def f(xs):
    s = 0
    did_break_0 = False
    for x in xs:
        did_continue_0 = False
        if x > 1:
            if x == 2:
                did_continue_0 = True
            elif x == 4:
                did_break_0 = True
            else:
                s += 1
        if not (did_break_0 or did_continue_0):
            log.append(x)
            s += x
        if did_break_0:
            break
    if not did_break_0:
        s = -s
    return s
