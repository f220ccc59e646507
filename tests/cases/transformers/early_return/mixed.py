# run: f(1, 0); f(0, 1); f(1, 1); f(0, 0)
def f(a, b):
    c = 0
    if a:
        if b:
            return 'both'
        c = 1
    else:
        c = 2
    log.append(c)
    if c == 2 and b:
        return c
    c += 1
    return c
# after
def f(a, b):
    did_return_0 = False
    c = 0
    if a:
        if b:
            did_return_0 = True
            return_value_0 = 'both'
        else:
            c = 1
    else:
        c = 2
    if not did_return_0:
        log.append(c)
        if c == 2 and b:
            return_value_0 = c
        else:
            c += 1
            return_value_0 = c
    return return_value_0
