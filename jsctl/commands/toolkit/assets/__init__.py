"""What streams and consumers have in common: names, configurations, lists, leaders."""
