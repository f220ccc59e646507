"""Programs on CuPy arrays as calls of CuPy."""
