"""Passes and analyses of memory: what is kept, what is computed again, what shares memory."""
