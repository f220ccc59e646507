# run: f(1); f(2); f(3)
def note(x):
    log.append(x)
    return x
def f(x):
    match note(x), x:
        case 1, x:
            return x
        case x, y if note(y) > 2:
            return 'guard', x
        case (1 | 2) as x, _ if (w := x):
            return x, w
# after
def f(x):
    subject_0 = note(x), x
    matched_0, bound_0 = _dy.match(subject_0, _dy.patterns.Sequence_(_dy.
        patterns.Value(lambda : 1), _dy.patterns.Name()))
    if matched_0:
        x, = bound_0
        return x
    else:
        matched_1, bound_1 = _dy.match(subject_0, _dy.patterns.Sequence_(
            _dy.patterns.Name(), _dy.patterns.Name()))
        if matched_1:
            x, y = bound_1
            took_0 = not not note(y) > 2
        else:
            took_0 = False
        if took_0:
            return 'guard', x
        else:
            matched_2, bound_2 = _dy.match(subject_0, _dy.patterns.
                Sequence_(_dy.patterns.Name(_dy.patterns.Either(_dy.
                patterns.Value(lambda : 1), _dy.patterns.Value(lambda : 2))
                ), _dy.patterns.Anything()))
            if matched_2:
                x, = bound_2
                took_1 = not not (w := x)
            else:
                took_1 = False
            if took_1:
                return x, w
