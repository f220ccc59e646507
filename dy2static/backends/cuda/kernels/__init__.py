"""Nodes that are no loop nests: their kernels, and the steps that libraries compute."""
