"""Array programs in each library; a module is imported in that library's environment only."""
