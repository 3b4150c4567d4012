"""The view of one stream: its panels at the left, at the right messages and what is asked for."""
