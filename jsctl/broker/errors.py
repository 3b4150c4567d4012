"""What can go wrong inside the broker that is not a bug.

BrokerError
├── ProtocolError      the peer sent something the protocol does not allow: reply or close
├── ConfigError        a flag or configuration value is wrong: names file, line and remedy
│   └── ConfigErrors   all that is wrong with one configuration
├── DiskError          the world's fault: a file operation failed
│   ├── DiskFull       no space; refuse new work, keep serving reads
│   ├── NotAFile       a directory, a link, a pipe or a device is where a file should be
│   └── SyncFailed     fsync failed: the file may not be trusted or written again
└── Damaged            stored bytes do not match their checksum
"""


class BrokerError(Exception):
    """Base of all expected failures of the broker."""


class ProtocolError(BrokerError):
    """A peer broke the protocol; `args[0]` is the text that the protocol has for it."""


class ConfigError(BrokerError):
    """A configuration value cannot be used.

    `place` is `file:line:column` or the flag's name; `remedy` says what to write instead.
    """

    def __init__(self, reason: str, *, place: str = "", remedy: str = "") -> None:
        self.reason = reason
        self.place = place
        self.remedy = remedy
        text = f"{place}: {reason}" if place else reason
        super().__init__(f"{text} ({remedy})" if remedy else text)


class ConfigErrors(ConfigError):
    """All that is wrong with one configuration; `errors` are in order of place."""

    def __init__(self, errors: list[ConfigError]) -> None:
        self.errors = errors
        super().__init__("\n".join(str(error) for error in errors))


class DiskError(BrokerError):
    """A file operation failed; names the path and the operating system's reason."""


class DiskFull(DiskError):
    """There is no room for a write. Nothing of it was acknowledged."""


class NotAFile(DiskError):
    """Something else is in the place of a file: as good as a file that is lost."""


class SyncFailed(DiskError):
    """An fsync failed. The kernel may have dropped pages: never retried, never believed."""


class Damaged(BrokerError):
    """Stored bytes do not check. Names file, range and, for messages, the sequences.

    `first_seq` and `last_seq` are 0 where the damage is not in messages.
    """

    def __init__(self, reason: str, *, path: str, first_seq: int = 0, last_seq: int = 0) -> None:
        self.path = path
        self.first_seq = first_seq
        self.last_seq = last_seq
        super().__init__(f"{path}: {reason}")
