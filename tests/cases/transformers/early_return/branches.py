# run: f(1); f(0); f(-1)
def f(x):
    if x > 0:
        return 'positive'
    elif x:
        return 'negative'
    else:
        return 'zero'
# after
def f(x):
    if x > 0:
        return_value_0 = 'positive'
    elif x:
        return_value_0 = 'negative'
    else:
        return_value_0 = 'zero'
    return return_value_0
