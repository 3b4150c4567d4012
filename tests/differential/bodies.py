"""Bodies of all requests but those that make streams and consumers."""

from random import Random
from typing import Any

from tests.differential.values import MOMENTS, NUMBERS, ODD, SUBJECTS

WHO = ("ORIGIN", "SEALED", "DENIED", "MIRROR", "NOBODY", "é", "*", "x" * 300)
"""Names, of streams that are there too."""
SEQUENCES = (0, 1, 2, 5, 6, 100, -1, 2**63, 2**64 - 1, 2**64)
REACHED = tuple(one for one in SEQUENCES if not 2**63 <= one < 2**64)
"""Streams that are purged up to there go on there, or nowhere: docs/differences.md."""
PAGES = {"offset": (0, 1, 5, 100, -1)}
GROUPS = ("g", "", "a b", "*")
PEERS = ("one", "nobody", "")
PLACES: tuple[Any, ...] = (
    *({"preferred": "one"}, {"preferred": "nobody"}, {"cluster": "C"}, {"tags": ["t"]}, {}, None),
)
Fields = dict[str, tuple[Any, ...]]
MESSAGE: Fields = {
    "seq": SEQUENCES,
    "last_by_subj": ("origin.a", "{p}.a", *SUBJECTS),
    "next_by_subj": ("origin.a", "{p}.>", *SUBJECTS),
    "batch": NUMBERS,
    "max_bytes": NUMBERS,
    "start_time": MOMENTS,
    "multi_last": ([], ["origin.a"], ["{p}.>", ">"], [""]),
    "up_to_seq": SEQUENCES,
    "up_to_time": MOMENTS,
    "no_hdr": (True, False),
}
PULL: Fields = {
    "batch": (0, 1, 2, 5, 100, -1),
    "expires": (0, 1, 100_000_000, 200_000_000, -1),
    "max_bytes": (0, 1, 100, 10_000, -1),
    "no_wait": (True, False),
    "idle_heartbeat": (0, 1, 60_000_000, 10**9, -1),
    "group": GROUPS,
    "min_pending": (0, 1, 100, -1),
    "min_ack_pending": (0, 1, 100, -1),
    "id": ("", "x"),
    "priority": (0, 1, 9, 10, -1),
}
DIRECT: dict[str, Fields] = {
    "DIRECT.GET.{s}": MESSAGE,
    "DIRECT.GET.{s}.origin.a": {"batch": NUMBERS, "seq": SEQUENCES},
    "DIRECT.GET.{s}.wide.a": {},
    "DIRECT.GET.{s}.a..b": {},
}
"""What is answered with messages."""
MOVES: Fields = {
    "server": PEERS[1:],
    "domain": ("X", "D"),
    "tags": (["nowhere"], ["nowhere", "here"]),
}
"""Nothing goes elsewhere by it."""
PEER: Fields = {"peer": ("nobody", ""), "peer_id": ("nobody", "x" * 8)}
OPERATORS: dict[str, Fields] = {
    "INFO": {"x": (1,)},
    "META.LEADER.STEPDOWN": {
        "placement": ({"preferred": "nobody"}, {"cluster": "X"}, {"tags": ["nowhere"]}),
    },
    "META.RESCUE": {"quorum_needed": (0, -1, 3, 100)},
    "SERVER.REMOVE": PEER,
    "SERVER.EVACUATE": PEER,
    "ACCOUNT.PURGE.{x}": {},
    "ACCOUNT.STREAM.MOVE.{a}.{s}": MOVES,
    "ACCOUNT.STREAM.CANCEL_MOVE.{a}.{s}": {},
    "ACCOUNT.STREAM.MOVE.{a}": MOVES,
}
WORDS: dict[str, Fields] = {
    "STREAM.NAMES": {**PAGES, "subject": ("origin.a", "wide.>", *SUBJECTS)},
    "STREAM.LIST": {**PAGES, "subject": ("origin.a", "nobody.>")},
    "STREAM.INFO.{s}": {
        **PAGES,
        "subjects_filter": (">", "origin.*", "nobody"),
    },
    "STREAM.DELETE.{r}": {"name": ("x",)},
    "STREAM.DELETE.{x}": {"name": ("x",)},
    "STREAM.PURGE.{p}": {"seq": REACHED, "keep": SEQUENCES, "filter": ("{p}.a", *SUBJECTS)},
    "STREAM.MSG.GET.{s}": MESSAGE,
    "STREAM.MSG.DELETE.{s}": {"seq": SEQUENCES, "no_erase": (True, False)},
    "STREAM.SNAPSHOT.{s}": {"deliver_subject": ("", "a b", "x.*"), "chunk_size": NUMBERS},
    "STREAM.RESTORE.{s}": {"config": ({"name": "x"},), "state": ({"messages": -1},)},
    "STREAM.LEADER.STEPDOWN.{s}": {"placement": PLACES},
    "STREAM.PEER.REMOVE.{s}": {"peer": PEERS},
    "STREAM.PEER.EVACUATE.{s}": {"peer": PEERS},
    "STREAM.CANCEL_MOVE.{s}": {},
    "CONSUMER.NAMES.{s}": {**PAGES, "subject": ("x",)},
    "CONSUMER.LIST.{s}": PAGES,
    "CONSUMER.INFO.{s}.{c}": {"x": (1,)},
    "CONSUMER.DELETE.{s}.{c}": {"x": (1,)},
    "CONSUMER.PAUSE.{s}.{c}": {"pause_until": MOMENTS},
    "CONSUMER.UNPIN.{s}.{c}": {"group": GROUPS},
    "CONSUMER.RESET.{r}.c": {"seq": SEQUENCES},
    "CONSUMER.LEADER.STEPDOWN.{s}.{c}": {"placement": PLACES},
    "CONSUMER.PEER.REMOVE.{s}.{c}": {"peer": PEERS},
    "CONSUMER.PEER.EVACUATE.{s}.{c}": {"peer": PEERS},
}
JUNK = (
    *(
        b"",
        b"",
        b"{}",
        b" ",
        b"[]",
        b"null",
        b"1",
        b'"x"',
        b"true",
        b"{",
        b"}",
        b"x",
        b"{]",
        b"[1,",
    ),
    *(b'{"a"}', b'{"a":}', b'{"a":1,}', b"{} {}", b"{}x", b"{'a':1}", b"-", b"1e", b"01", b"[1 2]"),
    *(b'{"a":tru}', b'{"a":"\\x"}', b'{"a":"\n"}', b'{"a":1} trailing', b"\x00", b'"open', b"nul"),
)


def drawn_body(random: Random, fields: Fields, *, junk: bool = True) -> Any:
    """A document of the request's fields, or what is none."""
    if not fields or (junk and random.random() < 0.35):
        return random.choice(JUNK)
    body: dict[str, Any] = {}
    for name in random.sample(list(fields), random.randint(1, min(2, len(fields)))):
        odd = random.random() < 0.15
        body[name] = random.choice(ODD) if odd else random.choice(fields[name])
    if junk and random.random() < 0.05:
        body["unknown_field"] = 1
    return body
