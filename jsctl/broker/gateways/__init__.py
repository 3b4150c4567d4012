"""Connections to servers of other clusters, which together make a super-cluster."""
