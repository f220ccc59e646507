"""Saved models: the programs of a function and the state they work on, as files that hold data only."""
