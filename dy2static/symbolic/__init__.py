"""Symbolic values: the Variables, arrays, numbers, lists and texts that user code meets during a capture."""
