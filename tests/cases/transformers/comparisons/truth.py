# run: f(1, 2, 3); f(3, 2, 1)
class N:

    def __init__(self, x):
        self.x = x

    def __lt__(self, other):
        log.append((self.x, other.x))
        return [1] if self.x < other.x else []


def f(a, b, c):
    return N(a) < N(b) < N(c)
# after
def f(a, b, c):
    return _dy.compare(N(a), '<', N(b), '<', lambda : N(c))
