"""The meta group on this server: founded or joined, followed, and left for good."""
