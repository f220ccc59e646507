# run: f([]); f([1]); f((1, 2)); f([1, 2, 3]); f('ab'); f(range(4)); f(iter([1])); f([[1, 2], 3]); f({1: 2}); f([0, 'x', 5])
def f(x):
    match x:
        case []:
            return 'empty'
        case [a]:
            log.append(a)
        case [[a, b], c] | [c, 'x', (a as b)]:
            log.append((a, b, c))
        case a, b:
            log.append((a, b))
        case [first, *_, last] if last > 2:
            return first, last
        case [*rest]:
            return rest
    return log
# after
def f(x):
    subject_0 = x
    matched_0, bound_0 = _dy.match(subject_0, _dy.patterns.Sequence_())
    if matched_0:
        return 'empty'
    else:
        matched_1, bound_1 = _dy.match(subject_0, _dy.patterns.Sequence_(
            _dy.patterns.Name()))
        if matched_1:
            a, = bound_1
            log.append(a)
        else:
            matched_2, bound_2 = _dy.match(subject_0, _dy.patterns.Either(
                _dy.patterns.Sequence_(_dy.patterns.Sequence_(_dy.patterns.
                Name(), _dy.patterns.Name()), _dy.patterns.Name()), _dy.
                patterns.Sequence_(_dy.patterns.Name(), _dy.patterns.Value(
                lambda : 'x'), _dy.patterns.Name(_dy.patterns.Name())),
                order=((0, 1, 2), (1, 2, 0))))
            if matched_2:
                a, b, c = bound_2
                log.append((a, b, c))
            else:
                matched_3, bound_3 = _dy.match(subject_0, _dy.patterns.
                    Sequence_(_dy.patterns.Name(), _dy.patterns.Name()))
                if matched_3:
                    a, b = bound_3
                    log.append((a, b))
                else:
                    matched_4, bound_4 = _dy.match(subject_0, _dy.patterns.
                        Sequence_(_dy.patterns.Name(), _dy.patterns.Rest(0),
                        _dy.patterns.Name()))
                    if matched_4:
                        first, last = bound_4
                        took_0 = not not last > 2
                    else:
                        took_0 = False
                    if took_0:
                        return first, last
                    else:
                        matched_5, bound_5 = _dy.match(subject_0, _dy.
                            patterns.Sequence_(_dy.patterns.Rest()))
                        if matched_5:
                            rest, = bound_5
                            return rest
    return log
