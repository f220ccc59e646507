# run: f(0); f(1)
def f(x):
    class Kept:
        def __enter__(self):
            return self

        def __exit__(self, kind, error, traceback):
            """Keep it."""
            log.append((kind, error is None))
            return True

    class All:
        def __enter__(self):
            return self

        def __exit__(self, *args):
            log.append(len(args))
            return False

    with Kept(), All():
        x = 1 / x
    return x
# after
def f(x):


    class Kept:

        def __enter__(self):
            return self

        def __exit__(self, kind, error, traceback):
            """Keep it."""
            _dy.handled(error)
            log.append((kind, error is None))
            return True


    class All:

        def __enter__(self):
            return self

        def __exit__(self, *args):
            _dy.handled(*args)
            log.append(len(args))
            return False
    with Kept(), All():
        x = 1 / x
    return x
