"""Networks of the sizes that people run, in each framework, and in inference engines."""
