"""Archives of streams: written, verified, restored, and read as the source of a pipeline."""
