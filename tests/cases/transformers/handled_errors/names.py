# run: f(0); f(2); f('')
def f(x):
    try:
        x = 1 / x
    except ZeroDivisionError as error:
        x = str(error)
    except (TypeError, ValueError):
        try:
            x.missing()
        except AttributeError as error:
            x = error.args
    return x
# after
def f(x):
    try:
        x = 1 / x
    except ZeroDivisionError as error:
        _dy.handled(error)
        x = str(error)
    except (TypeError, ValueError):
        try:
            x.missing()
        except AttributeError as error:
            _dy.handled(error)
            x = error.args
    return x
