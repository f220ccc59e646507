"""Graphs in the ops that a backend has."""
