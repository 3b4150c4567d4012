"""The reply subjects of fast batches: what is one, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.jetstream.batches.fast_replies import FastOperation, FastReply, read_reply

START, APPEND, COMMIT, END, PING = FastOperation

REPLIES = [
    (b"p.id.5.fail.1.0.$FI", FastReply(b"id", 5, False, 1, START)),
    (b"p.q.id.0.ok.7.1.$FI", FastReply(b"id", 10, True, 7, APPEND)),
    (b"p.id.x.ok.1.2.$FI", FastReply(b"id", 10, True, 1, COMMIT)),
    (b"p.id.70000.ok.2.3.$FI", FastReply(b"id", 65535, True, 2, END)),
    (b"p.id.1.ok.1.4.$FI", FastReply(b"id", 1, True, 1, PING)),
    (b"p.id.1.ok.18446744073709551614.1.$FI", FastReply(b"id", 1, True, (1 << 64) - 2, APPEND)),
    (b".id.1.ok.1.4.$FI", FastReply(b"id", 1, True, 1, PING)),
]
NO_REPLIES = [
    *(b".$FI", b"id.5.fail.1.0.$FI", b"p.id.5.no.1.0.$FI", b"p.id.5.ok.1.5.$FI"),
    *(b"p.id.5.ok.x.0.$FI", b"p.id.5.ok.0.4.$FI", b"p.id.5.ok.2.0.$FI", b"p.id.5.ok.1.1.$FI"),
    *(b"p.id.5.ok.1.3.$FI", b"p.id.5.ok.18446744073709551615.1.$FI", b"p.id.5.ok.-1.1.$FI"),
    *(b"p.id.5.ok.1..$FI", b"p.id.5.ok.%b.1.$FI" % (b"9" * 400)),
]


@pytest.mark.parametrize(("reply", "found"), REPLIES)
def test_replies(reply: bytes, found: FastReply) -> None:
    assert read_reply(reply) == found


@pytest.mark.parametrize("reply", NO_REPLIES)
def test_no_replies(reply: bytes) -> None:
    assert read_reply(reply) is None


@given(st.binary(max_size=80))
def test_any_reply_is_read_or_not(start: bytes) -> None:
    read_reply(start + b".$FI")
