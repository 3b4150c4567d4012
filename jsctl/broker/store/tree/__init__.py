"""What lies in the directory of a store, as the system shows it."""
