"""Streams and consumers judged by thresholds, from flags or from their own metadata."""
