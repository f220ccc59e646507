# run: f(0, 1); f(0, 0); f(1, 1); f('s', 1); f(None, 1); f(True, 1); f(2.5, 1); f(Color.RED, 0)
class Color:
    RED = 'red'
def f(x, n):
    match x:
        case None:
            return 'none'
        case True:
            return 'true'
        case 0 | 1 if n:
            y = 'small'
        case Color.RED | 's':
            y = 'text'
        case -1 | 2.5 as z:
            y = z
        case _:
            y = 'other'
    return y
# after
def f(x, n):
    subject_0 = x
    matched_0, bound_0 = _dy.match(subject_0, _dy.patterns.Same(None))
    if matched_0:
        return 'none'
    else:
        matched_1, bound_1 = _dy.match(subject_0, _dy.patterns.Same(True))
        if matched_1:
            return 'true'
        else:
            matched_2, bound_2 = _dy.match(subject_0, _dy.patterns.Either(
                _dy.patterns.Value(lambda : 0), _dy.patterns.Value(lambda : 1))
                )
            if matched_2 and n:
                y = 'small'
            else:
                matched_3, bound_3 = _dy.match(subject_0, _dy.patterns.
                    Either(_dy.patterns.Value(lambda : Color.RED), _dy.
                    patterns.Value(lambda : 's')))
                if matched_3:
                    y = 'text'
                else:
                    matched_4, bound_4 = _dy.match(subject_0, _dy.patterns.
                        Name(_dy.patterns.Either(_dy.patterns.Value(lambda :
                        -1), _dy.patterns.Value(lambda : 2.5))))
                    if matched_4:
                        z, = bound_4
                        y = z
                    else:
                        y = 'other'
    return y
