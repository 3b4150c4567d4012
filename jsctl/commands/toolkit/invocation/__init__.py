"""One run of a command: its values, its answer, its questions, its connections."""
