"""C code for graphs: which nodes C takes, which loops they share, and the text of whole functions."""
