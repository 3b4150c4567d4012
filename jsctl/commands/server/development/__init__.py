"""`server run` and `server generate`: servers to develop with, and configurations of real ones."""
