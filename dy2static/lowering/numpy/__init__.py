"""Calls of NumPy as ops: one table, for the capture and for every backend."""
