# run: f(1); f(0)
def f(x):

    def g(y):
        if y:
            return 1
        return 2

    class A:

        def h(self, y):
            if y:
                return 3
    if x:
        return g(x), A().h(x)
    return g(x), A().h(x), 0
# after
def f(x):

    def g(y):
        if y:
            return_value_1 = 1
        else:
            return_value_1 = 2
        return return_value_1


    class A:

        def h(self, y):
            if y:
                return_value_2 = 3
            else:
                return_value_2 = None
            return return_value_2
    if x:
        return_value_0 = g(x), A().h(x)
    else:
        return_value_0 = g(x), A().h(x), 0
    return return_value_0
