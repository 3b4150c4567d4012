"""Subjects of messages that came: anybody may choose any bytes, and most are text."""


class RawSubject(str):
    """A subject that is no UTF-8: what cannot be read is replaced, and `raw` is what came.

    A message to it, such as an answer, goes to `raw`.
    """

    __slots__ = ("raw",)
    raw: bytes

    @classmethod
    def of(cls, raw: bytes) -> "RawSubject":
        """The subject of these bytes."""
        made = cls(raw.decode("utf-8", "replace"))
        made.raw = raw
        return made


def subject_of(raw: bytes) -> str:
    """The text of a subject, a `RawSubject` if it is none."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return RawSubject.of(raw)


def bytes_of(subject: str) -> bytes:
    """What goes to the server."""
    return subject.raw if isinstance(subject, RawSubject) else subject.encode()


def exact(subject: str) -> str:
    """For those who show it byte by byte: what is no UTF-8 in half surrogate pairs."""
    if isinstance(subject, RawSubject):
        return subject.raw.decode("utf-8", "surrogateescape")
    return subject
