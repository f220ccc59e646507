"""Compiled in parts: where a statement cannot be compiled, what stands before and behind it is."""
