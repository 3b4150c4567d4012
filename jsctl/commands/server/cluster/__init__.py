"""`jsctl server cluster`."""
