"""Which cases are tried again: those in which nothing of ours runs."""

import pytest

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
