"""Native code on this machine: the system's C compiler, a store of compiled libraries on disk, loading, threads, kernels."""
