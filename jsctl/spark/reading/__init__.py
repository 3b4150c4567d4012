"""What Spark asks of a reader: plans of ranges, batches of rows, offsets of a stream."""
