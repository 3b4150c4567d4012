"""What a run ends with when it proves a bug."""


class Violation(AssertionError):
    """A promise was broken."""
