"""Damaged messages of this server's replicas: fetched from a peer, or found to be lost for good."""
