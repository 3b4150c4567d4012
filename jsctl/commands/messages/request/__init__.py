"""`jsctl request`."""
