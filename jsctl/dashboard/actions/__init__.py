"""What an operator may change: for each action its plan, its command line and its effects."""
