"""Who is kept waiting by a client that pipelines requests which take long.

`python -m benchmarks floods`. One client sends many at once: lists, subjects, messages of patterns,
publishes that expect something of a pattern. Another one asks whether the server is there all the
time: the figure is the longest that one PING took, beside the CPU of each request.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from benchmarks import cases, servers
from benchmarks.figure import Figure, Stopwatch
from benchmarks.servers import Kind
from benchmarks.wire import Address, Wire, now

STREAM = "FLOOD"
INBOX = b"_INBOX.flood"
STREAMS = 500
SUBJECTS = 50_000
BURST = 1_000
"""Messages that are stored before the next ones are sent."""
EXPECTS = (
    b"NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: 1\r\n"
    b"Nats-Expected-Last-Subject-Sequence-Subject: flood.%d.>\r\n\r\n"
)
FLOODS: dict[str, tuple[bytes, bytes, int]] = {
    "list": (b"$JS.API.STREAM.LIST", b"", 64),
    "subjects": (b"$JS.API.STREAM.INFO.FLOOD", b'{"subjects_filter":"flood.>"}', 16),
    "last": (b"$JS.API.STREAM.MSG.GET.FLOOD", b'{"last_by_subj":"flood.*.x"}', 64),
    "direct": (b"$JS.API.DIRECT.GET.FLOOD", b'{"last_by_subj":"flood.*.x"}', 64),
}
"""Subject, body, and how many at once."""


def floods(kind: Kind, scale: int) -> dict[str, Figure]:
    """On one server; all is in memory."""
    subjects, found = SUBJECTS // scale, dict[str, Figure]()
    with servers.single(kind) as broker:
        at = servers.address(broker)
        for number in range(STREAMS // scale):
            cases.make_stream(at, 1, f"S{number:04}", subjects=[f"s.{number}"], storage="memory")
        cases.make_stream(at, 1, STREAM, subjects=["flood.>"], storage="memory", allow_direct=True)
        wire = Wire(at)
        for first in range(0, subjects, BURST):
            some = range(first, min(first + BURST, subjects))
            wire.send(b"".join(b"PUB flood.%d.x 1\r\nx\r\n" % number for number in some))
            wire.flush()
        while _messages(wire) < subjects:
            pass
        wire.close()
        for name, (subject, body, count) in FLOODS.items():
            one = b"PUB %s %s %d\r\n%s\r\n" % (subject, INBOX, len(body), body)
            found[f"flood{name}"] = _beside(at, one * count, count)
        heads = [EXPECTS % number for number in range(200)]
        publishes = b"".join(
            b"HPUB flood.%d.x %s %d %d\r\n%s\r\n" % (number, INBOX, len(head), len(head), head)
            for number, head in enumerate(heads)
        )
        found["floodexpect"] = _beside(at, publishes, len(heads))
    return found


def _messages(wire: Wire) -> int:
    state = wire.api(f"STREAM.INFO.{STREAM}")["state"]
    assert isinstance(state, dict)
    return int(state["messages"])


def _beside(at: Address, flood: bytes, count: int) -> Figure:
    """The longest PING while a client sends this, and is answered."""
    watch, worst = Stopwatch(at), 0.0
    with _answered(at, flood, count) as done:
        wire = Wire(at)
        while not done.is_set() or not worst:
            start = now()
            wire.flush()
            worst = max(worst, now() - start)
        wire.close()
    figure = watch.rate(count)
    return Figure(worst * 1e6, "us", higher=False, cpu_us=figure.cpu_us)


@contextmanager
def _answered(at: Address, flood: bytes, count: int) -> Iterator[Event]:
    wire, done = Wire(at), Event()

    def run() -> None:
        try:
            wire.send(b"SUB %s 1\r\n" % INBOX + flood)
            wire.count(b"MSG " + INBOX + b" ", count)
        finally:
            done.set()

    thread = Thread(target=run)
    thread.start()
    yield done
    thread.join()
    wire.close()
