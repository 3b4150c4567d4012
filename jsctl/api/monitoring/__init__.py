"""What servers tell of themselves: the documents of the monitoring port and of `$SYS`."""
