"""The files of a file stream: segments of envelopes, and what is said of each beside it."""
