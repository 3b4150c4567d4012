"""Which servers, streams and consumers there are, and where."""
