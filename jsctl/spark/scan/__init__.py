"""One range of a stream -> chunks of rows, by a consumer of its own or by direct gets."""
