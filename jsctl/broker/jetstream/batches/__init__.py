"""Publishes that belong together: batches that are stored whole or not at all."""
