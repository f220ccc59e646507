# run: f({}); f({'k': 1}); f({'k': [1, 2], 'z': 3}); f(Point(0, 5)); f(Point(1, 5)); f(3); f(3.5); f('t'); f(b'b'); f(Other()); g(1); g(Point(1, 2)); h({'a': 1})
class Point:
    __match_args__ = ('x', 'y')
    def __init__(self, x, y):
        self.x, self.y = x, y
class Other:
    x = 7
def f(v):
    match v:
        case {'k': [a, b], **more}:
            return a, b, more
        case {'k': a}:
            return a
        case {}:
            return 'mapping'
        case Point(0, y=b):
            return b
        case Point(x=a, y=b):
            return a, b
        case Other(z=a) | Other(x=a):
            return a
        case int(a) | float(a):
            return 'number', a
        case str() as a:
            return a
def g(v):
    match v:
        case Point(1, 2, 3):
            return 1
        case Missing():
            return 2
def h(v):
    match v:
        case {'a': 2, **rest}:
            return rest
        case {'a': int(n)}:
            return n
# after
def f(v):
    subject_0 = v
    matched_0, bound_0 = _dy.match(subject_0, _dy.patterns.Mapping(lambda :
        ('k',), _dy.patterns.Sequence_(_dy.patterns.Name(), _dy.patterns.
        Name()), rest=True))
    if matched_0:
        a, b, more = bound_0
        return a, b, more
    else:
        matched_1, bound_1 = _dy.match(subject_0, _dy.patterns.Mapping(lambda :
            ('k',), _dy.patterns.Name()))
        if matched_1:
            a, = bound_1
            return a
        else:
            matched_2, bound_2 = _dy.match(subject_0, _dy.patterns.Mapping(
                lambda : ()))
            if matched_2:
                return 'mapping'
            else:
                matched_3, bound_3 = _dy.match(subject_0, _dy.patterns.
                    Instance(lambda : Point, _dy.patterns.Value(lambda : 0),
                    y=_dy.patterns.Name()))
                if matched_3:
                    b, = bound_3
                    return b
                else:
                    matched_4, bound_4 = _dy.match(subject_0, _dy.patterns.
                        Instance(lambda : Point, x=_dy.patterns.Name(), y=
                        _dy.patterns.Name()))
                    if matched_4:
                        a, b = bound_4
                        return a, b
                    else:
                        matched_5, bound_5 = _dy.match(subject_0, _dy.
                            patterns.Either(_dy.patterns.Instance(lambda :
                            Other, z=_dy.patterns.Name()), _dy.patterns.
                            Instance(lambda : Other, x=_dy.patterns.Name()),
                            order=((0,), (0,))))
                        if matched_5:
                            a, = bound_5
                            return a
                        else:
                            matched_6, bound_6 = _dy.match(subject_0, _dy.
                                patterns.Either(_dy.patterns.Instance(lambda :
                                int, _dy.patterns.Name()), _dy.patterns.
                                Instance(lambda : float, _dy.patterns.Name(
                                )), order=((0,), (0,))))
                            if matched_6:
                                a, = bound_6
                                return 'number', a
                            else:
                                matched_7, bound_7 = _dy.match(subject_0,
                                    _dy.patterns.Name(_dy.patterns.Instance
                                    (lambda : str)))
                                if matched_7:
                                    a, = bound_7
                                    return a
