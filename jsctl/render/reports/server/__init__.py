"""Servers: the overview, one in full, their JetStream, their connections."""
