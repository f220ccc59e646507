"""What is known of the callables of NumPy, Python and Chainer: one row for each, in the file of its library."""
