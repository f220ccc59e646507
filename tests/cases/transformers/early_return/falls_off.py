# run: f(1); f(0); f(5)
def f(x):
    if x == 1:
        return x
    if x == 5:
        log.append(x)
# after
def f(x):
    if x == 1:
        return_value_0 = x
    else:
        if x == 5:
            log.append(x)
        return_value_0 = None
    return return_value_0
