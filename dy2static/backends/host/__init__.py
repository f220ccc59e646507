"""The NumPy backend: graphs as readable Python functions."""
