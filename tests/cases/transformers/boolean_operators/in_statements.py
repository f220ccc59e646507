# run: f(3); f(0)
def f(n):
    while n and n > 1:
        n -= 1
    assert n or not n, not n
    with open('/dev/null') if n or 1 else None:
        pass
    for i in n and [n] or ():
        log.append(i)
    return n
# after
def f(n):
    while _dy.and_(n, lambda : n > 1):
        n -= 1
    assert _dy.or_(n, lambda : _dy.not_(n)), _dy.not_(n)
    with (open('/dev/null') if _dy.or_(n, lambda : 1) else None):
        pass
    for i in _dy.or_(_dy.and_(n, lambda : [n]), lambda : ()):
        log.append(i)
    return n
