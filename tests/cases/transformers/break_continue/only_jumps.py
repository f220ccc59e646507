# run: f([1, 2]); f([])
def f(xs):
    for x in xs:
        continue
    for y in xs:
        break
    while xs:
        break
    return x, y
# after
def f(xs):
    for x in xs:
        pass
    did_break_1 = False
    for y in xs:
        did_break_1 = True
        if did_break_1:
            break
    did_break_2 = False
    while not did_break_2 and xs:
        did_break_2 = True
    return x, y
