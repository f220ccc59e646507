# run: f(3); f(0)
class Items:

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        log.append('iter')
        return Once(self.n)


class Once:

    def __init__(self, n):
        self.n = n

    def __next__(self):
        log.append(self.n)
        if not self.n:
            raise StopIteration
        self.n -= 1
        return self.n


def f(n):
    for x in Items(n):
        if x == 1:
            break
    return [x for x in Items(n)]
# after
def f(n):
    did_break_0 = False

    def body_0(x, did_break_0):
        if x == 1:
            did_break_0 = True
        return did_break_0,
    did_break_0, = _dy.for_(Items(n), body_0, (did_break_0,), names=(
        'did_break_0',), stop=lambda did_break_0: did_break_0)
    return [x for x in Items(n)]
