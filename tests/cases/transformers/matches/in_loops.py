# run: f([1, 'stop', 2], 0); f(['skip', 3, 4], 0); f([1, ('return', 5)], 0); f([], 0); f(['u'], 0)
def f(items, n):
    for item in items:
        match item:
            case 'stop':
                break
            case 'skip':
                continue
            case ('return', value):
                return value
            case 'u':
                return late
            case int():
                late = item
        n = n + item
    else:
        n = -n
    return n, items and late
# after
def f(items, n):
    for item in items:
        subject_0 = item
        matched_0, bound_0 = _dy.match(subject_0, _dy.patterns.Value(lambda :
            'stop'))
        if matched_0:
            break
        else:
            matched_1, bound_1 = _dy.match(subject_0, _dy.patterns.Value(lambda
                : 'skip'))
            if matched_1:
                continue
            else:
                matched_2, bound_2 = _dy.match(subject_0, _dy.patterns.
                    Sequence_(_dy.patterns.Value(lambda : 'return'), _dy.
                    patterns.Name()))
                if matched_2:
                    value, = bound_2
                    return value
                else:
                    matched_3, bound_3 = _dy.match(subject_0, _dy.patterns.
                        Value(lambda : 'u'))
                    if matched_3:
                        return late
                    else:
                        matched_4, bound_4 = _dy.match(subject_0, _dy.
                            patterns.Instance(lambda : int))
                        if matched_4:
                            late = item
        n = n + item
    else:
        n = -n
    return n, items and late
