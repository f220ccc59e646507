"""The symbolic run: user code executed once on shadows, so that a graph comes out and nothing real is touched."""
