# run: f([1, 2, 3]); f([])
def f(xs):
    class C:
        if xs and (n := len(xs)) > 1:
            m = n
    if (n := len(xs)) > 2:
        log.append(n)
    if any((last := x) > 1 for x in xs):
        log.append(last)
    return sorted(name for name in vars(C) if not name.startswith('_')), (lambda v: v and (w := v))(n)
# after
def f(xs):


    class C:
        if xs and (n := len(xs)) > 1:
            m = n
    if (n := len(xs)) > 2:
        log.append(n)
    if any((last := x) > 1 for x in xs):
        log.append(last)
    return sorted(name for name in vars(C) if not name.startswith('_')), (
        lambda v: v and (w := v))(n)
