"""Device functions at run time: what launches regions, updates and loops."""
