# run: f([0, 1, 2], 0); f([1], 1); f([0], 1)
def f(xs, k):
    for x in xs:
        if x:
            done = k
        log.append(x)
        if done:
            break
    return x
# after
def f(xs, k):
    done = _dy.Undefined('done')

    def body_0(item_0, x, done):
        x = item_0
        if x:
            done = k
        log.append(x)
        return x, done
    x, done = _dy.for_(xs, body_0, (_dy.Undefined('x'), done), names=('x',
        'done'), stop=lambda x, done: _dy.read(done))
    return _dy.read(x)
