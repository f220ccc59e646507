"""What a compiled function has, in Paddle's terms: its programs with named inputs and results, and where it was put."""
