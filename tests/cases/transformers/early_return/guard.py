# run: f(1); f(0); f(-1)
def f(x):
    """What it does."""
    if x == 0:
        return
    if x > 0:
        log.append(x)
        return x
    y = -x
    return y + 1
# after
def f(x):
    """What it does."""
    if x == 0:
        return_value_0 = None
    elif x > 0:
        log.append(x)
        return_value_0 = x
    else:
        y = -x
        return_value_0 = y + 1
    return return_value_0
