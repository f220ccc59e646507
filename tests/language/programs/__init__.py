"""Programs by family: each function ``f(x, y, n)`` takes two Variables and an int."""
