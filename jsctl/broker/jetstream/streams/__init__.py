"""What a stream is and does, on any server and without one."""
