"""`jsctl server report`."""
