"""Paddle's names for compiled functions: programs with named inputs and results, translator, places, executor, traced layers."""
