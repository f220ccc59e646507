"""Compiled functions for other runtimes than Python."""
