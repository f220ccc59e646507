# run: f([1, 2]); f([]); f(3); f((x for x in [3, 0, 4]))
def f(xs):
    total = 0
    for x in xs:
        total += 6 / x
    return total
# after
def f(xs):
    total = 0

    def body_0(x, total):
        total += 6 / x
        return total,
    total, = _dy.for_(xs, body_0, (total,), names=('total',))
    return total
