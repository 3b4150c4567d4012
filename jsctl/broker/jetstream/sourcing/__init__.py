"""What a stream takes from other streams: as their mirror, or from them as sources."""
