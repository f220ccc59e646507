"""From graphs to code that runs."""
