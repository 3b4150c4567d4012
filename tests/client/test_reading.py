"""Reading a stream: what gets lost between server and client is noticed."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from jsctl.api.consumer import ConsumerConfig, ConsumerInfo
from jsctl.api.errors import ApiError
from jsctl.api.times import SECOND_NS
from jsctl.api.words import AckPolicy
from jsctl.client.reading import passing_consumer, read_stream
from jsctl.errors import Unreachable

COUNT = 6


def message(seq: int) -> Any:
    """One of a stream, as a consumer delivers it that had nothing else to deliver."""
    ack = f"$JS.ACK.S.C.1.{10 + seq}.{seq}.5.{COUNT - seq}"
    return SimpleNamespace(reply=ack, subject="s", headers={}, data=b"%d" % seq)


def over() -> Any:
    """A pull ends."""
    return SimpleNamespace(reply="", subject="", headers={"Status": "408"}, data=b"")


class Client:
    """Hears what is given, pull by pull."""

    is_connected = True

    def __init__(self, pulls: list[list[Any]]) -> None:
        self.pulls = pulls

    def new_inbox(self) -> str:
        return "in"

    async def publish(self, subject: str, body: bytes, reply: str) -> None:
        self.heard = self.pulls.pop(0)

    async def subscribe(self, inbox: str) -> Any:
        async def next_msg(timeout: float) -> Any:
            return self.heard.pop(0)

        async def unsubscribe() -> None:
            return None

        return SimpleNamespace(next_msg=next_msg, unsubscribe=unsubscribe)


def read(*pulls: list[Any]) -> list[int]:
    async def create(stream: str, config: object, *, action: str) -> Any:
        return SimpleNamespace(name="C", num_pending=COUNT)

    async def delete(stream: str, name: str) -> None:
        return None

    connection = SimpleNamespace(jetstream_api_prefix="", jetstream_domain="")
    manager: Any = SimpleNamespace(
        client=Client(list(map(list, pulls))),
        create_consumer=create,
        delete_consumer=delete,
        settings=SimpleNamespace(timeout=1.0, timeout_ns=10**9, connection=connection),
    )

    async def all_of() -> list[int]:
        return [one.seq async for one in read_stream(manager, "S")]

    return asyncio.run(all_of())


def test_messages_come_in_any_number_of_pulls() -> None:
    found = [message(seq) for seq in range(1, COUNT + 1)]
    assert read(found) == read([*found[:2], over()], [*found[2:4], over()], found[4:])
    assert read(found) == [11, 12, 13, 14, 15, 16]


@pytest.mark.parametrize("lost", [1, 3, 4])
def test_one_that_is_lost_is_not_passed_over(lost: int) -> None:
    found = [message(seq) for seq in range(1, COUNT + 1) if seq != lost]
    for pulls in ([found], [[*found[:3], over()], found[3:]]):
        with pytest.raises(Unreachable, match="got lost"):
            read(*pulls)


def test_a_stream_may_limit_its_consumers() -> None:
    made: list[ConsumerConfig] = []

    async def create(stream: str, config: ConsumerConfig, *, action: str) -> ConsumerInfo:
        made.append(config)
        if config.inactive_threshold > 5 * SECOND_NS:
            raise ApiError(400, 10153, "inactive threshold exceeds system limit")
        return ConsumerInfo(name="C")

    manager: Any = SimpleNamespace(create_consumer=create)
    wanted = ConsumerConfig(inactive_threshold=30 * SECOND_NS)
    asyncio.run(passing_consumer(manager, "S", wanted, action=""))
    assert [one.inactive_threshold for one in made] == [30 * SECOND_NS, 0]
    assert {(one.max_ack_pending, one.ack_policy) for one in made} == {(-1, AckPolicy.NONE)}


def test_other_refusals_are_told() -> None:
    async def create(stream: str, config: object, *, action: str) -> ConsumerInfo:
        raise ApiError(404, 10059, "stream not found")

    with pytest.raises(ApiError, match="stream not found"):
        asyncio.run(
            passing_consumer(
                SimpleNamespace(create_consumer=create),  # type: ignore[arg-type] # all it needs
                "S",
                ConsumerConfig(),
                action="",
            )
        )
