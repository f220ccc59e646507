# run: f(1); f(0)
import warnings


def f(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        if x:
            warnings.warn('once', stacklevel=2)
    return [str(w.message) for w in caught]
# after
def f(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        if x:
            warnings.warn('once', stacklevel=2)
    return [str(w.message) for w in caught]
