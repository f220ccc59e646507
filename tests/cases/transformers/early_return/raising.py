# run: f(1); f(0); f(-1)
def f(x):
    if x > 0:
        return x
    elif x < 0:
        raise ValueError(
            x)
    log.append(x)
    raise KeyError(x)
# after
def f(x):
    if x > 0:
        return_value_0 = x
    else:
        if x < 0:
            raise ValueError(x)
        log.append(x)
        raise KeyError(x)
    return return_value_0
