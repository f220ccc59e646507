"""Native code on this machine: the system's C compiler, what it made kept on disk, loading, libraries for products."""
