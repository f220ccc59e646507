# run: f(1); f(0)
def f(x):
    for i in range(x):
        pass

    class A:
        y = x
        assert y >= 0, y
    assert x, (y := i)
    return x
# after
def f(x):
    for i in range(x):
        pass


    class A:
        y = x
        assert y >= 0, y
    assert x, (y := _dy.read(i))
    return x
