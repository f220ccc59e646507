# run: f(1, 2, 3); f(3, 2, 1); f(1, 2, 2); f(1, 2, 'a')
def f(a, b, c):
    return (log.append(1) or a) < (log.append(2) or b) < (log.append(3) or c), a == b, a != b is not c, a < b in [c] == c
# after
def f(a, b, c):
    return _dy.compare(log.append(1) or a, '<', log.append(2) or b, '<', lambda
        : log.append(3) or c), a == b, _dy.compare(a, '!=', b, 'is not', lambda
        : c), _dy.compare(a, '<', b, 'in', lambda : [c], '==', lambda : c)
