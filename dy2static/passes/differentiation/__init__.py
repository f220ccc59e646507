"""Reverse-mode differentiation of graphs, and what is worked out for it."""
