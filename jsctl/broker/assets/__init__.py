"""Streams, consumers and the meta group on this server: replicas, and why they are here."""
