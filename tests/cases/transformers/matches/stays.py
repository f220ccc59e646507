# run: f(1); f(2)
def f(x):
    class C:
        match x:
            case 1:
                y = 'one'
            case _:
                y = 'other'
    if x > 1:
        cls = int
    match x:
        case 1:
            return C.y
        case cls():
            return 'int'
    return sorted(name for name in vars(C) if not name.startswith('_'))
# after
def f(x):

    class C:
        match x:
            case 1:
                y = 'one'
            case _:
                y = 'other'
    if x > 1:
        cls = int
    match x:
        case 1:
            return C.y
        case cls():
            return 'int'
    return sorted((name for name in vars(C) if not name.startswith('_')))
