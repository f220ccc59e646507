"""Paddle's names around compiled functions: the translator, places and the executor."""
