# run: f(1); f(0)
def f(x):
    for i in range(x):
        pass

    class A:
        y = x
        z = y if x else 0
    y = (w := x) if x else 0
    return A.z, y, (i if x else x)
# after
def f(x):
    for i in range(x):
        pass


    class A:
        y = x
        z = y if x else 0
    y = (w := x) if x else 0
    return A.z, y, _dy.read(i) if x else x
