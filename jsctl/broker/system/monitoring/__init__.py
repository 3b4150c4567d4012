"""What operators ask a server about itself, over HTTP and over `$SYS.REQ`."""
