# run: f([(1, (2, 3, 4))]); f([1]); f([])
class A:
    pass


def f(pairs):
    a = A()
    for i, (a.x, *rest) in pairs:
        log.append((i, rest))
    for a.y in range(2):
        pass
    return a.y, a.x
# after
def f(pairs):
    a = A()

    def body_0(item_0):
        i, (a.x, *rest) = item_0
        log.append((i, rest))
        return ()
    _dy.for_(pairs, body_0, (), names=())

    def body_1(item_1):
        a.y = item_1
        pass
        return ()
    _dy.for_(range(2), body_1, (), names=())
    return a.y, a.x
