"""Asking servers for what they know of themselves and of their connections."""
