"""Streams as archives: snapshots that are sent, restores that are received."""
