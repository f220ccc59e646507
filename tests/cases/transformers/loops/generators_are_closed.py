# run: f(0); f(1); f(2)
def g():
    try:
        yield 0
        yield 1
        yield 2
    finally:
        log.append('closed')


def f(n):
    try:
        for i in g():
            log.append(1 / (i - n))
            if i + 1 == n:
                break
        log.append('after')
    except ZeroDivisionError:
        log.append('caught')
    return n
# after
def f(n):
    try:
        did_break_0 = False

        def body_0(i, did_break_0):
            log.append(1 / (i - n))
            if i + 1 == n:
                did_break_0 = True
            return did_break_0,
        did_break_0, = _dy.for_(g(), body_0, (did_break_0,), names=(
            'did_break_0',), stop=lambda did_break_0: did_break_0)
        log.append('after')
    except ZeroDivisionError:
        log.append('caught')
    return n
