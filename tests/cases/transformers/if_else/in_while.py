# run: f(5); f(0)
def f(n):
    total = 0
    while n > 0:
        if n % 2:
            total += n
        n -= 1
    return total
# after
def f(n):
    total = 0
    while n > 0:

        def then_0(total):
            total += n
            return total,

        def else_0(total):
            return total,
        total, = _dy.cond(n % 2, then_0, else_0, (total,), names=('total',))
        n -= 1
    return total
