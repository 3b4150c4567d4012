"""Streams: the tables of many, the screen of one."""
