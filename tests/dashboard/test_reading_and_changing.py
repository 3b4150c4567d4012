"""Looking into streams, and everything that can be changed, on nats-server and on our broker."""

from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path

import nats
import pytest
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig
from textual.widgets import Input, TextArea

from jsctl.api.errors import ApiError
from jsctl.api.times import SECOND_NS
from jsctl.dashboard.actions.catalog import action_named
from jsctl.dashboard.actions.plans import Plan, Target, Tier
from jsctl.dashboard.actions.streams import publish
from jsctl.dashboard.connection.link import Dialer, Link
from jsctl.dashboard.connection.peek import PAGE, Peek
from jsctl.dashboard.connection.poller import Poller, Rounds
from jsctl.dashboard.model.documents import sections, text
from jsctl.dashboard.model.message import StoredMessage
from jsctl.dashboard.model.model import Model
from jsctl.dashboard.model.snapshot import Snapshot
from jsctl.dashboard.once import text_of
from jsctl.dashboard.screens.seeking import parse_seek
from jsctl.dashboard.widgets.grid import Grid
from jsctl.errors import JsctlError, NotAllowed
from jsctl.testing import Broker, RealServer
from tests.dashboard.conftest import SEEN_S, Drive, Driven, settings_of
from tests.support.waiting import eventually

KINDS: dict[str, type[Broker]] = {"nats-server": RealServer, "jsctl": Broker}
SYSTEM = "accounts { $SYS { users: [ { user: sys, password: sys } ] } }\n"
_NUMBERS = count(1)


@pytest.fixture(scope="module", params=list(KINDS))
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with KINDS[str(request.param)]("-js", name="one", config=SYSTEM) as running:
        yield running


@pytest.fixture
async def js(broker: Broker) -> AsyncIterator[JetStreamContext]:
    client = await nats.connect(broker.url)
    yield client.jetstream(timeout=30)
    await client.close()


@pytest.fixture
async def name(js: JetStreamContext) -> str:
    """A stream of this test with thirty messages of three subjects and a consumer."""
    made = f"S{next(_NUMBERS)}"
    await js.add_stream(name=made, subjects=[f"{made}.>"])
    await js.add_consumer(
        made, ConsumerConfig(durable_name="worker", ack_policy=AckPolicy.EXPLICIT)
    )
    for number in range(30):
        await js.publish(f"{made}.{number % 3}", b"%d" % number, headers={"N": str(number)})
    return made


@pytest.fixture
async def link(broker: Broker) -> AsyncIterator[Link]:
    dialer = Dialer(settings_of([broker.url]), settings_of([broker.url], system=True))
    link = await dialer.dial(lambda _subject, _document: None)
    yield link
    await link.close()


def bodies(found: list[StoredMessage]) -> list[int]:
    """The numbers that the messages carry."""
    return [int(one.data) for one in found]


async def test_pages(link: Link, js: JetStreamContext, name: str) -> None:
    peek = Peek(link.manager, name)
    assert bodies(await peek.newest(1, 30, 5)) == [25, 26, 27, 28, 29]
    assert bodies(await peek.page(11, 3)) == [10, 11, 12]
    assert bodies(await peek.before(1, 11, 3)) == [7, 8, 9]
    assert bodies(await peek.before(1, 3, 10)) == [0, 1]
    assert await peek.page(31) == []
    message = (await peek.page(1, 1))[0]
    assert (message.seq, message.subject, message.headers) == (1, f"{name}.0", (("N", "0"),))
    await js.delete_msg(name, 30)
    await js.delete_msg(name, 2)
    assert bodies(await peek.newest(1, 30, 2)) == [27, 28], "holes are skipped"
    assert bodies(await peek.page(1, 2)) == [0, 2]


async def test_only_one_subject(link: Link, name: str) -> None:
    peek = Peek(link.manager, name, f"{name}.1")
    assert bodies(await peek.newest(1, 30, 4)) == [19, 22, 25, 28]
    assert bodies(await peek.page(6, 2)) == [7, 10]


async def test_a_point_in_time(link: Link, name: str) -> None:
    peek = Peek(link.manager, name)
    for wanted in (1, 7, 30):
        time_ns = (await peek.page(wanted, 1))[0].time_ns
        found = await peek.at_time(1, 30, time_ns)
        first = next(one.seq for one in await peek.page(1) if one.time_ns >= time_ns)
        assert found == first
    assert await peek.at_time(1, 30, 2**62) == 31


def test_what_was_typed_to_seek() -> None:
    now = 100 * SECOND_NS
    assert parse_seek("12345", now) == ("seq", 12345)
    assert parse_seek("10s", now) == ("time", 90 * SECOND_NS)
    assert parse_seek("1970-01-01T00:00:05Z", now) == ("time", 5 * SECOND_NS)
    assert parse_seek("orders.*.>", now) == ("subject", "orders.*.>")


async def looked(link: Link) -> Snapshot:
    """A snapshot over this connection, which stays open."""
    rounds = Rounds(link, Model("test"))
    await rounds.tick()
    await rounds.look()
    return rounds.model.snapshot(1)


async def plan(link: Link, action: str, stream: str, consumer: str = "") -> Plan:
    """What a dialog would show."""
    now = await looked(link)
    target: Target
    if consumer:
        target = next(one for one in now.consumers if (one.stream, one.name) == (stream, consumer))
    else:
        target = next(one for one in now.streams if one.name == stream)
    made = action_named(action)
    assert made.fits(target, now)
    assert made.plan is not None
    assert made.command(target).startswith("jsctl ")
    return made.plan(target, now)


async def test_purging(link: Link, js: JetStreamContext, name: str) -> None:
    made = await plan(link, "purge", name)
    assert made.tier is Tier.TYPED and made.typed("all") == name
    keep = next(one for one in made.choices if one == "keep 1")
    effects = {one.label: one for one in made.effects(keep)}
    assert effects["messages"].value == "29 go"
    assert effects["unread"].value == "29" and "worker" in effects["unread"].note
    assert await made.run(link, keep) == "purged 29 messages"
    assert (await js.stream_info(name)).state.messages == 1
    assert await made.run(link, "all") == "purged 1 message"


async def test_pausing_and_resuming(link: Link, js: JetStreamContext, name: str) -> None:
    made = await plan(link, "pause", name, "worker")
    assert made.tier is Tier.SUMMARY
    assert made.check("soon") and made.check("0s") and not made.check("90s")
    assert (await made.run(link, "5m")).startswith("paused for")
    again = await plan(link, "pause", name, "worker")
    assert again.title == "Resume consumer" and again.tier is Tier.YES_NO
    assert await again.run(link, "") == "resumed"
    last = await plan(link, "pause", name, "worker")
    assert last.title == "Pause consumer"


async def test_sealing(link: Link, js: JetStreamContext, name: str) -> None:
    assert await (await plan(link, "seal", name)).run(link, "") == "sealed"
    now = await looked(link)
    stream = next(one for one in now.streams if one.name == name)
    assert stream.sealed
    assert not action_named("purge").fits(stream, now), "nothing can be purged any more"


async def test_deleting(link: Link, js: JetStreamContext, name: str) -> None:
    assert await (await plan(link, "delete", name, "worker")).run(link, "") == "deleted"
    assert [one.name for one in (await looked(link)).consumers if one.stream == name] == []
    assert "30 messages" in await (await plan(link, "delete", name)).run(link, "")
    assert name not in {one.name for one in (await looked(link)).streams}
    with pytest.raises(ApiError):
        await link.manager.stream_info(name)


async def test_backing_up(
    link: Link, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = await plan(link, "backup", name)
    assert made.tier is Tier.YES_NO
    chosen = made.choices[0]
    assert f"jsctl stream backup {name} {chosen}" == made.command(chosen)
    assert chosen in await made.run(link, chosen)
    written = {one.name for one in (tmp_path / chosen).iterdir()}
    assert written == {"backup.json", "stream.arc.s2"}
    assert "not empty" in made.check(chosen)


async def test_publishing(link: Link, js: JetStreamContext, name: str) -> None:
    assert await publish(link, f"{name}.new", "hello") == f"stored in {name} as 31"
    with pytest.raises(JsctlError):
        await publish(link, "nobody.listens", "hello")


async def test_more_replicas_than_servers_are_refused(link: Link, name: str) -> None:
    made = await plan(link, "replicas", name)
    assert made.choices == ("1",), "there is one server"
    with pytest.raises(ApiError):
        await made.run(link, "3")


async def test_unpinning(link: Link, js: JetStreamContext, name: str) -> None:
    from jsctl.api.consumer import ConsumerConfig as Config
    from jsctl.api.words import AckPolicy as Ack
    from jsctl.api.words import PriorityPolicy

    config = Config(
        name="pinned",
        durable_name="pinned",
        ack_policy=Ack.EXPLICIT,
        priority_groups=("A",),
        priority_policy=PriorityPolicy.PINNED_CLIENT,
        priority_timeout=60 * SECOND_NS,
    )
    await link.manager.create_consumer(name, config, level=1)
    inbox = link.client.new_inbox()
    pulled = await link.client.subscribe(inbox)
    body = b'{"batch": 5, "group": "A", "expires": 5000000000}'
    await link.client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{name}.pinned", body, reply=inbox)
    await pulled.next_msg(timeout=30)

    async def pinned() -> bool:
        now = await looked(link)
        return any(client for one in now.consumers for _, client in one.pinned)

    await eventually(pinned, "a client is pinned")
    made = await plan(link, "unpin", name, "pinned")
    assert (await made.run(link, "A")).startswith("unpinned ")


async def test_only_the_account(broker: Broker, name: str) -> None:
    settings = settings_of([broker.url])
    now = await Poller(Dialer(settings, None), "app", lambda _snapshot: None, 0.2).once()
    assert not now.system and now.jetstream and not now.servers
    assert "--system-context" in now.note
    stream = next(one for one in now.streams if one.name == name)
    assert (stream.messages, stream.lag) == (30, 30)
    assert action_named("purge").fits(stream, now)


async def test_only_the_system(broker: Broker, name: str) -> None:
    settings = settings_of([broker.url], system=True)
    now = await Poller(Dialer(settings, None), "sys", lambda _snapshot: None, 0.2).once()
    assert now.system and not now.jetstream and len(now.servers) == 1
    stream = next(one for one in now.streams if one.name == name)
    assert stream.messages == 30
    assert not action_named("purge").fits(stream, now), "it is not our account"


async def test_editing_through_the_keys(
    broker: Broker, js: JetStreamContext, name: str, drive: Drive
) -> None:
    async with drive([broker.url]) as driven:
        await driven.until(lambda now: now.stream(f"$G/{name}"), "the stream is listed")
        driven.app.screen.query_one("#streams").select(f"$G/{name}")  # type: ignore[attr-defined]
        await driven.press("e")

        async def opened() -> bool:
            await driven.pilot.pause()
            return "Edit" in type(driven.app.screen).__name__

        await eventually(opened, "the editor is open")
        screen = driven.app.screen
        area = screen.query_one(TextArea)
        area.text = area.text.replace('"max_msgs": -1', '"max_msgs": 1000')
        await driven.pilot.pause()
        shown = text_of(driven.app)
        assert f"$ jsctl stream edit {name} --max-msgs 1000 -f" in shown
        assert '+  "max_msgs": 1000,' in shown
        await driven.press("ctrl+s")

        async def changed() -> bool:
            await driven.pilot.pause()
            return (await js.stream_info(name)).config.max_msgs == 1000

        await eventually(changed, "the stream was changed")


class Reader:
    """The screen of one stream, by its keys and by what it shows."""

    def __init__(self, driven: Driven) -> None:
        self.driven = driven

    async def open(self, name: str) -> None:
        """From the overview."""
        driven = self.driven
        await driven.until(lambda now: now.stream(f"$G/{name}"), "the stream is listed")
        driven.app.screen.query_one("#streams", Grid).select(f"$G/{name}")
        await driven.press("enter")

    async def until(self, fact: Callable[[], bool], what: str) -> None:
        """Waits for something; AssertionError with the screen."""

        async def look() -> bool:
            await self.driven.pilot.pause()
            return fact()

        try:
            await eventually(look, what, SEEN_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{text_of(self.driven.app)}") from None

    async def seen(self, text: str) -> None:
        """Waits for a text on the screen."""
        await self.until(lambda: text in text_of(self.driven.app), text)

    async def seek(self, text: str) -> None:
        """Types where to go, once there is a line to type in."""
        await self.driven.press("i")
        await self.until(lambda: isinstance(self.driven.app.focused, Input), "a line to type in")
        await self.driven.type(text)
        await self.driven.press("enter")


async def test_following_and_seeking_through_the_keys(
    broker: Broker, js: JetStreamContext, name: str, drive: Drive
) -> None:
    async with drive([broker.url]) as driven:
        screen = Reader(driven)
        await screen.open(name)
        await screen.seen("Message #30")
        await js.publish(f"{name}.new", b'{"fresh": true}')
        await screen.seen('"fresh": true')
        await screen.seek("7")
        await screen.seen("Message #7")
        assert "live" not in text_of(driven.app)
        await screen.seek(f"{name}.new")
        await screen.seen("1 of 31")
        await driven.press("3")
        await screen.seen(f"{name}.1")
        await driven.press("4")
        await screen.seen("Configuration")
        assert f"Information for Stream {name}" in text_of(driven.app)


async def test_a_message_of_a_rare_subject_is_shown_once(
    broker: Broker, js: JetStreamContext, name: str, drive: Drive
) -> None:
    """However much comes of others: it is among the last ones again and again."""
    async with drive([broker.url]) as driven:
        screen = Reader(driven)
        await screen.open(name)
        await screen.seen("Message #30")
        await screen.seek(f"{name}.rare")
        await screen.seen("0 of 30")
        await js.publish(f"{name}.rare", b"first")
        await screen.seen("1 of 31")
        for _ in range(PAGE + 9):
            await js.publish(f"{name}.other", b"")
        await js.publish(f"{name}.rare", b"second")
        await screen.seen(f"2 of {31 + PAGE + 10}")


async def test_a_stream_that_was_made_anew_is_followed(
    broker: Broker, js: JetStreamContext, name: str, drive: Drive
) -> None:
    async with drive([broker.url]) as driven:
        screen = Reader(driven)
        await screen.open(name)
        await screen.seen("Message #30")
        await js.delete_stream(name)
        await js.add_stream(name=name, subjects=[f"{name}.>"])
        await js.publish(f"{name}.new", b"of the new one")
        await screen.seen("of the new one")


async def test_what_could_not_be_read_is_read_once_it_can_be(
    broker: Broker, js: JetStreamContext, name: str, drive: Drive
) -> None:
    async with drive([broker.url]) as driven:
        screen = Reader(driven)
        await screen.open(name)
        await screen.seen("Message #30")
        await js.delete_stream(name)
        await screen.seek("5")
        await screen.seen("stream not found")
        driven.app.frozen = True  # or it reads the stream before there is anything in it
        await js.add_stream(name=name, subjects=[f"{name}.>"])
        for number in range(6):
            await js.publish(f"{name}.{number}", b"%d" % number)
        driven.app.frozen = False
        await screen.seen("Message #5")
        assert "stream not found" not in text_of(driven.app)


async def test_buckets_and_object_stores_open_at_what_they_hold(
    broker: Broker, js: JetStreamContext, drive: Drive
) -> None:
    bucket = await js.create_key_value(bucket="settings", history=3)
    for value in (b"light", b"dark"):
        await bucket.put("app.theme", value)
    store = await js.create_object_store("assets")
    await store.put("logo.png", b"x" * 3000)
    async with drive([broker.url]) as driven:
        await driven.until(lambda now: now.stream("$G/OBJ_assets"), "both are listed")

        async def seen(*texts: str) -> None:
            async def look() -> bool:
                await driven.pilot.pause()
                return all(text in text_of(driven.app) for text in texts)

            await eventually(look, str(texts))

        await driven.press("6", "enter")
        await seen("$KV.settings.app.theme")
        await driven.press("enter")
        await seen("2 of 2", "dark")
        await driven.press("escape", "7", "enter")
        await seen('"name": "logo.png"', '"size": 3000')
    await js.delete_key_value("settings")
    await js.delete_object_store("assets")


async def test_a_dial_that_fails_leaves_no_connection(broker: Broker) -> None:
    account = settings_of([broker.url])
    with pytest.raises(NotAllowed):
        await Dialer(account, account).dial(lambda _subject, _document: None)
    system = settings_of([broker.url], system=True)
    link = await Dialer(system, None).dial(lambda _subject, _document: None)

    async def only_ours() -> bool:
        told = await link.ask_servers("CONNZ", {"auth": True})
        names = [text(one, "name") for one in sections(told[0].data, "connections")]
        return [name for name in names if name.startswith("jsctl dashboard")] == ["jsctl dashboard"]

    try:
        await eventually(only_ours, "the account's connection is closed")
    finally:
        await link.close()
