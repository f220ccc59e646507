# run: f([1, 2, 3], 1, {'a': 5}); f((1, 2), -1, {'a': [0]}); f([], 0, {'a': 1}); f([1], 0, {})
def f(x, i, d):
    k = 'a'
    log.append(x[i])
    log.append((d[k], x[0], x[-1], x[i:], x[i:][0], x[::-1]))
    d[k] = x[i - 1]
    d[k] += x[i]
    y = [x[j] for j in range(len(x))]
    del d[k]
    return y[x[i] - x[i]], (lambda v: v[i])(x)
# after
def f(x, i, d):
    k = 'a'
    log.append(_dy.item(x, i))
    log.append((_dy.item(d, k), x[0], x[-1], x[i:], x[i:][0], x[::-1]))
    d[k] = _dy.item(x, i - 1)
    d[k] += _dy.item(x, i)
    y = [_dy.item(x, j) for j in range(len(x))]
    del d[k]
    return _dy.item(y, _dy.item(x, i) - _dy.item(x, i)), (lambda v: _dy.
        item(v, i))(x)
