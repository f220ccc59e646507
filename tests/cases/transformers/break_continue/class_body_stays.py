# run: f(3); f(0)
def f(n):

    class A:
        for i in range(n):
            if i == 1:
                break
        else:
            i = None
    return A.i
# after
def f(n):


    class A:
        for i in range(n):
            if i == 1:
                break
        else:
            i = None
    return A.i
