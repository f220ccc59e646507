# run: f([1, 2]); f([])
def f(xs):
    for x in xs:
        if x:
            break
            y = x
    return len([lambda: y])
# after
def f(xs):
    for x in xs:
        if x:
            break
            y = x
    return len([lambda : y])
