"""Which cases are tried again: those in which nothing of ours runs."""

import gc
import socket

import pytest

from tests.support.peers import forget_attempts

OURS, THEIRS = "jsctl", "nats-server"


@pytest.mark.parametrize(
    ("kinds", "again"),
    [
        (THEIRS, True),
        ((THEIRS, THEIRS), True),
        (OURS, False),
        ("jsctl, pure", False),
        ((THEIRS, OURS), False),
        ((OURS, OURS), False),
        ("another word", False),
    ],
    ids=str,
)
def test_only_cases_of_the_real_server_are_tried_again(
    request: pytest.FixtureRequest, kinds: object, *, again: bool
) -> None:
    assert kinds
    assert (request.node.get_closest_marker("flaky") is not None) is again


def test_cases_without_servers_are_not_tried_again(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("flaky") is None


class Holder:
    """What only the garbage collector finds again."""

    def __init__(self) -> None:
        self.me, self.open = self, socket.socket()


def test_what_a_failed_attempt_left_open_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", told.append)
    gc.collect()
    told.clear()
    Holder()
    forget_attempts()
    gc.collect()
    assert not told
    Holder()
    gc.collect()
    assert told, "it would be told of"
