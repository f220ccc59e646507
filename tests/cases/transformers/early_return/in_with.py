# run: f(1); f(0)
def f(x):
    with open('/dev/null'):
        if x:
            return 1
    return 2
# after
def f(x):
    did_return_0 = False
    with open('/dev/null'):
        if x:
            did_return_0 = True
            return_value_0 = 1
    if not did_return_0:
        return_value_0 = 2
    return return_value_0
