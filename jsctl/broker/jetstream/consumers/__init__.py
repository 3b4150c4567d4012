"""What a consumer is and does, on any server and without one."""
