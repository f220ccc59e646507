"""Whole steps of training in each framework; a module is imported in that framework's environment only."""
