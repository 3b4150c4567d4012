"""Answers that are no documents: what a server tells of a message beside it."""

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from jsctl.client.headers import Headers
from jsctl.client.stored import direct_answer
from jsctl.errors import JsctlError


def told(seq: str, stored: str) -> Msg:
    pairs = [("Nats-Subject", "s"), ("Nats-Sequence", seq), ("Nats-Time-Stamp", stored)]
    return Msg(Client(), "inbox", data=b"body", headers=Headers.of(pairs))


def test_a_place_and_a_time() -> None:
    found = direct_answer(told("7", "2026-01-02T03:04:05.5Z"))
    assert (found.subject, found.seq, found.time) == ("s", 7, "2026-01-02T03:04:05.5Z")


@pytest.mark.parametrize(
    ("seq", "stored"),
    [("-1", ""), ("x", ""), ("9" * 5000, ""), ("7", "2026-99-01T00:00:00Z"), ("7", "now")],
)
def test_what_is_none_is_an_error(seq: str, stored: str) -> None:
    with pytest.raises(JsctlError, match="headers that cannot be read"):
        direct_answer(told(seq, stored))
