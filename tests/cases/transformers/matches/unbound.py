# run: f(1); f(2); f([1]); f([2]); f([3])
def f(x):
    match x:
        case 1:
            y = 'one'
        case [1 as y]:
            pass
        case [z] if z > 2:
            y = z
    return y
# after
def f(x):
    subject_0 = x
    matched_0, bound_0 = _dy.match(subject_0, _dy.patterns.Value(lambda : 1))
    if matched_0:
        y = 'one'
    else:
        matched_1, bound_1 = _dy.match(subject_0, _dy.patterns.Sequence_(
            _dy.patterns.Name(_dy.patterns.Value(lambda : 1))))
        if matched_1:
            y, = bound_1
            pass
        else:
            matched_2, bound_2 = _dy.match(subject_0, _dy.patterns.
                Sequence_(_dy.patterns.Name()))
            if matched_2:
                z, = bound_2
                took_0 = not not z > 2
            else:
                took_0 = False
            if took_0:
                y = z
    return y
