# run: f(1, 2, 3); f(0, 2, 3); f(1, 0, 0); f([], (), {})
def f(a, b, c):
    return a and b, a or b, not a, a and b or not c, a and b and c, a or b or c
# after
def f(a, b, c):
    return _dy.and_(a, lambda : b), _dy.or_(a, lambda : b), _dy.not_(a
        ), _dy.or_(_dy.and_(a, lambda : b), lambda : _dy.not_(c)), _dy.and_(a,
        lambda : b, lambda : c), _dy.or_(a, lambda : b, lambda : c)
