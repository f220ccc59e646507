"""Python source in, Python function out: fetch, parse, analyse, quote, print, load."""
