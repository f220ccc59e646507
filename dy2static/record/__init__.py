"""What a capture relied on and what it left: paths, guards, writes and results, each with its text, test and JSON."""
