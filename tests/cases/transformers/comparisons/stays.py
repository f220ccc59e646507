# run: f(1); f(0)
def f(x):
    for i in range(x):
        pass

    class A:
        y = x
        z = 0 < y < x
    return A.z, 0 < x < (y := 3), 1 <= x < i
# after
def f(x):
    for i in range(x):
        pass


    class A:
        y = x
        z = 0 < y < x
    return A.z, 0 < x < (y := 3), 1 <= x < _dy.read(i)
