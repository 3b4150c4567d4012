"""Schedules: which publishes are taken as one, what they make and when, and how they end."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError, ServiceUnavailableError

from jsctl.broker.jetstream.scheduling.patterns import next_due
from jsctl.broker.server.time_zones import offset
from jsctl.testing import Broker, RealServer
from tests.contract.conftest import KINDS
from tests.contract.test_archives import restore, take
from tests.support.waiting import eventually

WAIT_S = 30.0
PAST = "@at 1970-01-01T00:00:00Z"
Headers = dict[str, str]
Config = dict[str, Any]


def soon(seconds: float = 1.0) -> str:
    """A schedule that is due once."""
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    return f"@at {at.isoformat().replace('+00:00', 'Z')}"


async def ask(client: Client, subject: str, body: Config | None = None) -> Any:
    """The decoded answer of the API."""
    payload = b"" if body is None else json.dumps(body).encode()
    answer = await client.request(f"$JS.API.{subject}", payload, timeout=WAIT_S)
    return json.loads(answer.data)


async def create(client: Client, name: str, **more: Any) -> Any:
    """A stream that has schedules."""
    config = {"name": name, "subjects": [f"{name}.>"], "allow_msg_schedules": True, **more}
    return await ask(client, f"STREAM.CREATE.{name}", config)


@pytest.fixture
async def without_end(client: Client, fresh: str) -> AsyncIterator[None]:
    """For schedules that nobody ends: their streams go with the test, as the servers stay for the
    tests behind it and would go on until the last one."""
    yield
    for name in (fresh, f"{fresh}M"):
        await ask(client, f"STREAM.DELETE.{name}")


async def publish(client: Client, subject: str, headers: Headers, payload: bytes = b"") -> Any:
    """The sequence, or the code of an error; one that was just made may not be heard of yet."""

    async def answered() -> Msg | None:
        with suppress(NoRespondersError):
            return await client.request(subject, payload, timeout=WAIT_S, headers=headers or None)
        return None

    found = json.loads((await eventually(answered, "somebody listens", WAIT_S)).data)
    return found["error"]["err_code"] if "error" in found else found["seq"]


def plan(name: str, schedule: str, **more: str) -> Headers:
    """Headers of a schedule; words are joined by dashes."""
    fields = {f"Nats-{key.replace('_', '-')}": value for key, value in more.items()}
    return {"Nats-Schedule": schedule, "Nats-Schedule-Target": f"{name}.out", **fields}


async def last(js: JetStreamContext, name: str, subject: str) -> tuple[bytes, Headers] | None:
    """Body and headers of the last message of a subject."""
    try:
        found = await js.get_last_msg(name, subject)
    except NotFoundError:
        return None
    return found.data or b"", dict(found.headers or {})


async def made(js: JetStreamContext, name: str, subject: str = "out") -> tuple[bytes, Headers]:
    """The same, when there is one."""
    found: list[tuple[bytes, Headers]] = []

    async def there() -> bool:
        try:
            one = await last(js, name, f"{name}.{subject}")
        except ServiceUnavailableError:  # While another server is about to lead.
            return False
        found.extend([] if one is None else [one])
        return one is not None

    await eventually(there, "the schedule to be due", WAIT_S)
    return found[-1]


CONFIGS: list[tuple[Config, int]] = [
    ({"discard": "new"}, 10052),
    ({"allow_msg_counter": True}, 10052),
    ({"pedantic": True}, 10052),
    ({"pedantic": True, "allow_rollup_hdrs": True}, 0),
    ({"deny_purge": True, "allow_rollup_hdrs": True}, 10052),
    ({"subjects": None, "mirror": {"name": "NOWHERE"}}, 10186),
    ({"sources": [{"name": "NOWHERE"}]}, 10187),
    ({"retention": "workqueue"}, 0),
    ({"deny_purge": True}, 0),
]


async def test_which_streams_have_schedules(client: Client, fresh: str) -> None:
    found = []
    for config, _ in CONFIGS:
        answer = await create(client, fresh, **config)
        found.append(answer.get("error", {}).get("err_code", 0))
        if "error" not in answer:
            assert answer["config"]["allow_rollup_hdrs"] is True
            assert answer["config"].get("deny_purge", False) is False
            assert answer["config"]["metadata"]["_nats.req.level"] == "2"
            await ask(client, f"STREAM.DELETE.{fresh}")
    assert found == [code for _, code in CONFIGS]


async def test_they_are_switched_on_and_never_off(client: Client, fresh: str) -> None:
    await create(client, fresh, allow_msg_schedules=False)
    config = (await create(client, f"{fresh}X"))["config"]
    config["allow_msg_schedules"] = False
    answer = await ask(client, f"STREAM.UPDATE.{fresh}X", config)
    assert "message schedules can not be disabled" in answer["error"]["description"]
    assert await publish(client, f"{fresh}.s", plan(fresh, PAST)) == 10188
    body = {"name": fresh, "subjects": [f"{fresh}.>"], "allow_msg_schedules": True}
    assert (await ask(client, f"STREAM.UPDATE.{fresh}", body))["config"]["allow_msg_schedules"]
    assert await publish(client, f"{fresh}.s", plan(fresh, "@yearly")) == 1


REFUSED: list[tuple[str, Headers, int]] = [
    ("invalid", {}, 10189),
    ("@at", {}, 10189),
    ("@at  2027-01-02T03:04:05Z", {}, 10189),
    ("@at 2027-01-02 03:04:05Z", {}, 10189),
    ("@at 2027-01-02T03:04:05", {}, 10189),
    ("@at 2027-02-29T03:04:05Z", {}, 10189),
    ("@at 2027-01-02T24:04:05Z", {}, 10189),
    ("@at 2027-01-02T03:04:60Z", {}, 10189),
    ("@at 2027-01-02T03:04:05+25:00", {}, 10189),
    ("@every 999ms", {}, 10189),
    ("@every 1d", {}, 10189),
    ("@every -5s", {}, 10189),
    ("@every", {}, 10189),
    ("@Hourly", {}, 10189),
    ("* * * * *", {}, 10189),
    ("* * * * * * *", {}, 10189),
    ("60 * * * * *", {}, 10189),
    ("* * 24 * * *", {}, 10189),
    ("* * * 0 * *", {}, 10189),
    ("* * * 32 * *", {}, 10189),
    ("* * * * 13 *", {}, 10189),
    ("* * * * * 7", {}, 10189),
    ("* * * * january *", {}, 10189),
    ("5-1 * * * * *", {}, 10189),
    ("*/0 * * * * *", {}, 10189),
    ("1-2-3 * * * * *", {}, 10189),
    ("1/2/3 * * * * *", {}, 10189),
    ("0 0 0 30 2 *", {}, 10189),
    ("0 0 0 31 4,6,9,11 *", {}, 10189),
    ("0 * * * * *", {"Nats-Schedule-Time-Zone": "Not/AZone"}, 10223),
    ("0 * * * * *", {"Nats-Schedule-Time-Zone": "+02:00"}, 10223),
    ("0 * * * * *", {"Nats-Schedule-Time-Zone": "../UTC"}, 10223),
    ("0 * * * * *", {"Nats-Schedule-Time-Zone": "/etc/localtime"}, 10223),
    ("0 * * * * *", {"Nats-Schedule-Time-Zone": "America"}, 10223),
    ("0 * * * * *", {"Nats-Schedule-Time-Zone": ""}, 10223),
    ("invalid", {"Nats-Schedule-Time-Zone": "UTC"}, 10189),
    ("@every 5s", {"Nats-Schedule-Time-Zone": "UTC"}, 10189),
    (PAST, {"Nats-Schedule-Time-Zone": "UTC"}, 10189),
    ("", {"Nats-Schedule-Time-Zone": "Not/AZone"}, 10223),
    (PAST, {"Nats-Schedule-TTL": "bad"}, 10191),
    (PAST, {"Nats-Schedule-TTL": "1s"}, 10166),
    (PAST, {"Nats-Schedule-Rollup": "all"}, 10192),
    (PAST, {"Nats-Rollup": "all"}, 10192),
    (PAST, {"Nats-Schedule-Target": ""}, 10190),
    (PAST, {"Nats-Schedule-Target": "NAME.*"}, 10190),
    (PAST, {"Nats-Schedule-Target": "NAME.s"}, 10190),
    (PAST, {"Nats-Schedule-Target": "elsewhere"}, 10190),
    (PAST, {"Nats-Schedule-Source": "NAME.*"}, 10203),
    (PAST, {"Nats-Schedule-Source": "NAME.s"}, 10203),
    (PAST, {"Nats-Schedule-Source": "NAME.out"}, 10203),
    (PAST, {"Nats-Schedule-Source": "elsewhere"}, 10203),
    (PAST, {"Nats-Expected-Last-Sequence": "5"}, 10071),
    (PAST, {"Nats-Schedule-TTL": "bad", "Nats-Schedule-Rollup": "all"}, 10191),
    (PAST, {"Nats-Schedule-Target": "", "Nats-Schedule-Rollup": "all"}, 10192),
    (PAST, {"Nats-Schedule-Next": "purge"}, 10212),
    (PAST, {"Nats-Scheduler": "NAME.x"}, 10212),
]


async def test_what_is_no_schedule(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh)
    found: list[int] = []
    for schedule, more, _ in REFUSED:
        headers = {**plan(fresh, schedule), **more}
        headers = {key: value.replace("NAME", fresh) for key, value in headers.items()}
        found.append(await publish(client, f"{fresh}.s", headers))
    assert found == [code for _, _, code in REFUSED]
    assert (await js.stream_info(fresh)).state.last_seq == 0


TAKEN = [
    "@at 2100-01-02T03:04:05.123456789123Z",
    "@at 2100-01-02T03:04:05,5+24:00",
    "@at 2100-01-02T3:04:05Z",
    "@every 1h30m",
    "@every 1500ms",
    "@midnight",
    "  0  0 0 1 jan  SUN ",
    "?  ? 5 1,,2 */1 *-5",
    "5/20 +5 0-23/3 29 feb *",
    "0 0 0 1 1 1-5",
]


async def test_what_is_a_schedule(client: Client, fresh: str) -> None:
    await create(client, fresh)
    found = [await publish(client, f"{fresh}.s", plan(fresh, text)) for text in TAKEN]
    assert found == list(range(1, len(TAKEN) + 1))
    assert (await ask(client, f"STREAM.INFO.{fresh}"))["state"]["messages"] == 1


@pytest.mark.parametrize("storage", ["file", "memory"])
async def test_once(client: Client, js: JetStreamContext, fresh: str, storage: str) -> None:
    await create(client, fresh, storage=storage, allow_msg_ttl=True)
    await publish(client, f"{fresh}.s", plan(fresh, soon(3600)))
    more = {
        "Nats-Expected-Stream": fresh,
        "Nats-Expected-Last-Sequence": "1",
        "Nats-Expected-Last-Subject-Sequence": "1",
        "Nats-Msg-Id": "X",
        "Nats-TTL": "60s",
        "Own": "value",
    }
    headers = {**plan(fresh, soon(), Schedule_TTL="1h"), **more}
    assert await publish(client, f"{fresh}.s", headers, b"body") == 2
    stored = await last(js, fresh, f"{fresh}.s")
    assert stored is not None and stored[1] == {**headers, "Nats-Rollup": "sub"}
    assert (await js.stream_info(fresh)).state.messages == 1
    body, found = await made(js, fresh)
    assert body == b"body" and list(found.items()) == [
        ("Own", "value"),
        ("Nats-Scheduler", f"{fresh}.s"),
        ("Nats-Schedule-Next", "purge"),
        ("Nats-TTL", "1h"),
    ]
    state = (await js.stream_info(fresh)).state
    assert (state.last_seq, state.messages) == (3, 1)


@pytest.mark.usefixtures("without_end")
async def test_again_and_again(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh)
    await publish(client, f"{fresh}.s", plan(fresh, "@every 1s", Schedule_Rollup="sub"), b"x")
    await publish(client, f"{fresh}.c", plan(fresh, "* * * * * *", Schedule_Target=f"{fresh}.cron"))
    _, first = await made(js, fresh)
    _, cron = await made(js, fresh, "cron")
    assert first["Nats-Rollup"] == "sub" and "Nats-Rollup" not in cron

    async def again() -> bool:
        found = await last(js, fresh, f"{fresh}.out")
        return found is not None and found[1] != first

    await eventually(again, "the next message", WAIT_S)
    info = await js.stream_info(fresh, subjects_filter=">")
    assert info.state.subjects is not None and info.state.subjects[f"{fresh}.out"] == 1
    assert info.state.subjects[f"{fresh}.s"] == info.state.subjects[f"{fresh}.c"] == 1


async def test_a_sample_of_another_subject(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await create(client, fresh)
    headers = {"Nats-Schedule-Next": "purge", "Nats-Scheduler": f"{fresh}.none", "Own": "1"}
    await publish(client, f"{fresh}.data", headers, b"data")
    source = {"Schedule_Source": f"{fresh}.data"}
    await publish(client, f"{fresh}.s", plan(fresh, PAST, **source), b"own")
    body, found = await made(js, fresh)
    assert (body, found["Own"], found["Nats-Scheduler"]) == (b"data", "1", f"{fresh}.s")
    await js.purge_stream(fresh)
    await publish(client, f"{fresh}.s", plan(fresh, PAST, **source), b"own")
    assert (await made(js, fresh))[0] == b"own"


async def test_how_schedules_end(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh)
    at = soon(1.5)
    for name in ("plain", "purged", "deleted", "cancelled", "kept"):
        await publish(
            client, f"{fresh}.s.{name}", plan(fresh, at, Schedule_Target=f"{fresh}.{name}")
        )
    assert await publish(client, f"{fresh}.s.plain", {}) == 6
    await js.purge_stream(fresh, subject=f"{fresh}.*.purged")
    await js.delete_msg(fresh, 3)
    end = {"Nats-Schedule-Next": "purge", "Nats-Scheduler": f"{fresh}.s.cancelled"}
    once = {"Nats-Expected-Last-Subject-Sequence-Subject": f"{fresh}.s.cancelled"}
    once["Nats-Expected-Last-Subject-Sequence"] = "4"
    assert await publish(client, f"{fresh}.s.cancelled", end) == 10212
    assert await publish(client, f"{fresh}.end", {**end, "Nats-Scheduler": f"{fresh}.>"}) == 10212
    assert await publish(client, f"{fresh}.end", {**end, "Nats-Schedule-Next": "later"}) == 10212
    assert await publish(client, f"{fresh}.end", {**end, **once}) == 7
    assert await publish(client, f"{fresh}.end", {**end, **once}) == 10071
    assert await publish(client, f"{fresh}.end", end) == 8
    assert await publish(client, f"{fresh}.x", {**end, "Nats-Scheduler": f"{fresh}.end"}) == 10212
    await made(js, fresh, "kept")
    info = await js.stream_info(fresh, subjects_filter=">")
    assert info.state.subjects == {f"{fresh}.s.plain": 2, f"{fresh}.end": 2, f"{fresh}.kept": 1}


async def test_a_schedule_on_the_target_of_another(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await create(client, fresh)
    await publish(client, f"{fresh}.a", plan(fresh, soon(0.5), Schedule_Target=f"{fresh}.b"), b"a")
    await publish(client, f"{fresh}.b", plan(fresh, soon(2), Schedule_Target=f"{fresh}.c"), b"b")
    assert (await made(js, fresh, "c"))[0] == b"b"
    assert (await js.stream_info(fresh)).state.messages == 1


async def test_its_own_time_to_live_ends_it(
    client: Client, js: JetStreamContext, fresh: str
) -> None:
    await create(client, fresh, allow_msg_ttl=True)
    await publish(client, f"{fresh}.s", {**plan(fresh, soon(4)), "Nats-TTL": "1s"})

    async def gone() -> bool:
        return (await js.stream_info(fresh)).state.messages == 0

    await eventually(gone, "the schedule to be over", WAIT_S)
    await publish(client, f"{fresh}.t", plan(fresh, soon(4), Schedule_Target=f"{fresh}.later"))
    await made(js, fresh, "later")
    assert (await js.stream_info(fresh)).state.messages == 1


async def test_members_of_a_batch(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh, allow_atomic=True)
    inbox = client.new_inbox()
    answers = await client.subscribe(inbox)

    async def batch(*messages: tuple[str, Headers]) -> Any:
        for number, (subject, headers) in enumerate(messages, 1):
            fields = {**headers, "Nats-Batch-Id": "b", "Nats-Batch-Sequence": str(number)}
            if number == len(messages):
                fields["Nats-Batch-Commit"] = "1"
            await client.publish(f"{fresh}.{subject}", b"", inbox, headers=fields)
        replies = [await answers.next_msg(WAIT_S) for _ in messages]
        return json.loads(replies[-1].data)

    end = {"Nats-Schedule-Next": "purge", "Nats-Scheduler": f"{fresh}.s"}
    answer = await batch(("x", {}), ("s", plan(fresh, "invalid")))
    assert answer["error"]["err_code"] == 10189
    answer = await batch(("x", {}), ("s", plan(fresh, "@yearly")), ("end", end))
    assert answer["count"] == 3
    info = await js.stream_info(fresh, subjects_filter=">")
    assert info.state.subjects == {f"{fresh}.x": 1, f"{fresh}.end": 1}
    answer = await batch(("s", plan(fresh, "@yearly")), ("s", plan(fresh, "@yearly")))
    assert answer["error"]["err_code"] == 10111
    await batch(("s", plan(fresh, PAST)), ("y", {}))
    await made(js, fresh)


def calendar(draw: random.Random, at: datetime) -> str:
    """An expression that is due at some second, and at others."""

    def values(one: int, low: int, high: int) -> str:
        others = [str(draw.randint(low, high)) for _ in range(draw.randint(0, 3))]
        if draw.random() < 0.2:
            others.append(f"{draw.randint(low, (low + high) // 2)}-{high}/{draw.randint(2, 7)}")
        return ",".join([str(one), *others])

    fields = [str(at.second)]
    for one, low, high in ((at.minute, 0, 59), (at.hour, 0, 23), (at.day, 1, 31)):
        fields.append(values(one, low, high) if draw.random() < 0.8 else str(one))
    fields.append(draw.choice(["*", values(at.month, 1, 12), str(at.month)]))
    weekday = at.isoweekday() % 7
    fields.append(draw.choice(["*", "?", values(weekday, 0, 6), "*/2", str(weekday)]))
    return " ".join(fields)


ZONES = ["", "UTC", "Europe/Amsterdam", "America/New_York", "Asia/Kathmandu", "America/St_Johns"]
ZONES += ["Australia/Lord_Howe", "Africa/Cairo", "Pacific/Chatham", "Asia/Tokyo", "CET", "Cuba"]


@pytest.mark.usefixtures("without_end")
async def test_when_the_calendar_says_so(client: Client, js: JetStreamContext, fresh: str) -> None:
    """Both servers say when schedules are due next, and say what our reckoning does."""
    await create(client, fresh)
    at = int(datetime.now(UTC).timestamp()) + 5
    draw = random.Random(at // 86_400)
    told: dict[str, tuple[str, str]] = {}
    sent: list[Awaitable[Any]] = []
    for number in range(60):
        zone = ZONES[number % len(ZONES)]
        ahead = offset(zone or "UTC", at) or 0
        text = calendar(draw, datetime.fromtimestamp(at + ahead, UTC))
        headers = plan(fresh, text, Schedule_Target=f"{fresh}.out.{number}")
        if zone:
            headers["Nats-Schedule-Time-Zone"] = zone
        sent.append(publish(client, f"{fresh}.s.{number}", headers))
        told[str(number)] = text, zone
    stored = await asyncio.gather(*sent)  # One after the other they may take longer than is left.
    assert sorted(stored) == [*range(1, 61)]
    assert datetime.now(UTC).timestamp() < at, "all of it was sent before it is due"
    for name, (text, zone) in told.items():
        _, found = await made(js, fresh, f"out.{name}")
        clock = (lambda moment, zone=zone: offset(zone, moment) or 0) if zone else None
        due = next_due(text, clock, at * 10**9, at * 10**9)
        assert due is not None and found["Nats-Schedule-Next"] == due.text, (text, zone)


async def test_a_restart_forgets_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What was due meanwhile is made once."""
    for kind in KINDS:
        with KINDS[kind]("-js", directory=tmp_path_factory.mktemp("store")) as broker:
            client = await nats.connect(broker.url, connect_timeout=30)
            await create(client, "S")
            await publish(client, "S.a", plan("S", soon(1), Schedule_Target="S.once"))
            await publish(client, "S.b", plan("S", "@every 1s", Schedule_Target="S.often"))
            await publish(client, "S.c", plan("S", soon(3600), Schedule_Target="S.later"))
            await client.close()
            broker.restart(kill=True)
            client = await nats.connect(broker.url, connect_timeout=30)
            js = client.jetstream(timeout=30)
            await made(js, "S", "once")
            await made(js, "S", "often")
            subjects = (await js.stream_info("S", subjects_filter=">")).state.subjects or {}
            assert subjects.pop("S.often") > 0
            assert subjects == {"S.once": 1, "S.b": 1, "S.c": 1}
            await client.close()


@pytest.mark.usefixtures("without_end")
async def test_a_mirror_is_no_scheduler(
    client: Client, js: JetStreamContext, fresh: str, broker: Broker
) -> None:
    """It has what its origin has, and lets go of what that lets go of; made a stream of its own it
    goes on with the schedules, which nats-server knows nothing of then."""
    await create(client, fresh)
    copy = f"{fresh}M"
    config = {"name": copy, "mirror": {"name": fresh}, "allow_rollup_hdrs": True}
    answer = await ask(client, f"STREAM.CREATE.{copy}", config)
    assert "error" not in answer, answer
    await publish(client, f"{fresh}.once", plan(fresh, soon(1)))
    later = plan(fresh, "@every 1s", Schedule_Target=f"{fresh}.often")
    await publish(client, f"{fresh}.s", later)
    await made(js, fresh)

    async def subjects() -> dict[str, int]:
        return (await js.stream_info(copy, subjects_filter=">")).state.subjects or {}

    async def follows() -> bool:
        found = await subjects()
        return found.get(f"{fresh}.out") == 1 and f"{fresh}.once" not in found

    await eventually(follows, "the mirror to follow", WAIT_S)
    await ask(client, f"STREAM.DELETE.{fresh}")
    before = (await subjects()).get(f"{fresh}.often", 0)
    config = {"name": copy, "subjects": [f"{fresh}.>"], "allow_msg_schedules": True}
    answer = await ask(client, f"STREAM.UPDATE.{copy}", config)
    assert "error" not in answer, answer

    async def goes_on() -> bool:
        return (await subjects()).get(f"{fresh}.often", 0) > before + 1

    if not isinstance(broker, RealServer):
        await eventually(goes_on, "the schedule to go on", WAIT_S)


@pytest.mark.usefixtures("without_end")
async def test_schedules_are_in_backups(client: Client, js: JetStreamContext, fresh: str) -> None:
    await create(client, fresh)
    await publish(client, f"{fresh}.s", plan(fresh, soon(2)), b"once")
    often = plan(fresh, "@every 1s", Schedule_Target=f"{fresh}.often")
    await publish(client, f"{fresh}.t", often)
    taken = await take(client, fresh)
    await ask(client, f"STREAM.DELETE.{fresh}")
    answer = await restore(client, taken.answer["config"], taken.data)
    assert "error" not in answer, answer
    assert (await made(js, fresh))[0] == b"once"
    await made(js, fresh, "often")
