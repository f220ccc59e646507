"""Loop nests, whatever language they are written in: which nodes share one, where elements are, and in which order all runs."""
