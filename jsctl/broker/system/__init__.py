"""The system account: requests, events, advisories, and the facts of monitoring."""
