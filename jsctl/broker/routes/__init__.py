"""Connections between the servers of a cluster: dialled, shaken hands on, gossiped about."""
