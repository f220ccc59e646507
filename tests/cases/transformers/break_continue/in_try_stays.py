# run: f(['1', 'x', '2']); f([])
def f(xs):
    for x in xs:
        try:
            int(x)
        except ValueError:
            break
        finally:
            log.append(x)
    return x
# after
def f(xs):
    for x in xs:
        try:
            int(x)
        except ValueError:
            break
        finally:
            log.append(x)
    return x
