# run: f(1); f(0)
class A:

    def __init__(self, name):
        log.append(name)
        self.name = name

    def __format__(self, spec):
        log.append((self.name, spec))
        return self.name


def f(x):
    xs = [x]
    return f"{A('a')} {xs} {xs.append(1)} {A('b'):>{x + 1}} {1 / x}"
# after
def f(x):
    xs = [x]
    return _dy.fstring(_dy.format_(A('a')), ' ', _dy.format_(xs), ' ', _dy.
        format_(xs.append(1)), ' ', _dy.format_(A('b'), _dy.fstring('>',
        _dy.format_(x + 1))), ' ', _dy.format_(1 / x))
