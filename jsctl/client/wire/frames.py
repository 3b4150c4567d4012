"""Messages as they are sent."""


def frame_of(subject: bytes, payload: bytes, reply: bytes = b"", header: bytes = b"") -> bytes:
    """A publish; `header` is a whole block."""
    target = b"%b %b" % (subject, reply) if reply else subject
    if not header:
        return b"PUB %b %d\r\n%b\r\n" % (target, len(payload), payload)
    sizes = b"%d %d" % (len(header), len(header) + len(payload))
    return b"HPUB %b %b\r\n%b%b\r\n" % (target, sizes, header, payload)
