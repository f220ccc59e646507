"""Decisions and loops on symbolic values: captured in regions, joined, or forked."""
