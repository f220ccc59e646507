# run: f([1], []); f([1], [2])
def f(xs, ys):
    for x in xs:
        if x:
            for y in ys:
                log.append(y)
            else:
                break
    return x
# after
def f(xs, ys):
    did_break_0 = False
    for x in xs:

        def then_0(did_break_0):
            for y in ys:
                log.append(y)
            did_break_0 = True
            return did_break_0,

        def else_0(did_break_0):
            return did_break_0,
        did_break_0, = _dy.cond(x, then_0, else_0, (did_break_0,), names=(
            'did_break_0',))
        if did_break_0:
            break
    return _dy.read(x)
