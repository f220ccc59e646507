# run: f(3); f(0)
def f(n):
    s = 0
    while s < 4 * n:
        for i in range(n):
            for j in range(i):
                s += j
        s += 1
    return s
# after
def f(n):
    s = 0

    def test_0(s):
        return s < 4 * n

    def body_0(s):

        def body_1(i, s):

            def body_2(j, s):
                s += j
                return s,
            s, = _dy.for_(range(i), body_2, (s,), names=('s',))
            return s,
        s, = _dy.for_(range(n), body_1, (s,), names=('s',))
        s += 1
        return s,
    s, = _dy.while_(test_0, body_0, (s,), names=('s',))
    return s
