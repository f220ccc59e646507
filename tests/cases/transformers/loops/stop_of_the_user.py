# run: f([1, 2, 3]); f([])
def f(xs):
    for x in xs:
        done = x == 2
        log.append(x)
        if done:
            break
    return log
# after
def f(xs):

    def body_0(x, done):
        done = x == 2
        log.append(x)
        return done,
    done, = _dy.for_(xs, body_0, (_dy.Undefined('done'),), names=('done',),
        stop=lambda done: done)
    return log
