# run: f(5); f(0); f('a')
def f(n):
    total = 0
    while n > 0:
        total += n
        n -= 1
    return total
# after
def f(n):
    total = 0

    def test_0(total, n):
        return n > 0

    def body_0(total, n):
        total += n
        n -= 1
        return total, n
    total, n = _dy.while_(test_0, body_0, (total, n), names=('total', 'n'))
    return total
