# run: f('1'); f('x'); f('')
def f(x):
    y = None
    try:
        if x:
            y = x
            y = int(y)
    except ValueError:
        log.append(y)
    return y
# after
def f(x):
    y = None
    try:
        if x:
            y = x
            y = int(y)
    except ValueError:
        log.append(y)
    return y
