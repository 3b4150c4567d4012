"""What becomes of a traced message, as nats-server tells it, on one server."""

import gzip
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import cramjam
import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.traces import CONTEXT, plain, steps
from tests.support.waiting import eventually

ACCOUNTS = """
accounts {
  A: {
    jetstream: enabled
    users: [
      {user: a, password: a}
      {user: limited, password: limited, permissions: {publish: {deny: ["no", "td.no"]}}}
    ]
    mappings: {"m.*": "mapped.$1"}
    msg_trace: {dest: "acc.dest", sampling: 100}
    exports: [
      {stream: "st.>"}
      {stream: "dk.>"}
      {service: "svc.traced", allow_trace: true}
      {service: "svc.plain"}
    ]
  }
  B: {
    users: [{user: b, password: b}]
    imports: [
      {stream: {account: A, subject: "st.>"}, prefix: "from", allow_trace: true}
      {stream: {account: A, subject: "dk.>"}, prefix: "dark"}
      {service: {account: A, subject: "svc.traced"}, to: "ask.traced"}
      {service: {account: A, subject: "svc.plain"}}
    ]
  }
}
"""
DEST = {"Nats-Trace-Dest": "tr.x"}
ONLY = {"Nats-Trace-Only": "true"}
INGRESS = "in acc=A kind=0 name=a subj={}"


@pytest.fixture(scope="module", params=list(KINDS))
def server(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """One for all tests: each has subjects of its own."""
    with KINDS[str(request.param)]("-js", config=ACCOUNTS, name="one") as running:
        yield running


REFUSED: tuple[tuple[str, dict[str, str], str, str], ...] = (
    ("C", {}, "x", "message counter increment is missing (10169)"),
    ("C", {}, "", "message counter increment is missing (10169)"),
    ("C", {"Nats-Incr": "x"}, "", "message counter increment is invalid (10171)"),
    ("C", {"Nats-Incr": "1"}, "x", "message counter has payload (10170)"),
    (
        "C",
        {"Nats-Incr": "1", "Nats-Rollup": "all"},
        "",
        "message counter increment is invalid (10171)",
    ),
    ("P", {"Nats-Incr": "1"}, "", "message counters is disabled (10168)"),
    ("P", {"Nats-Schedule": "@every 1s"}, "x", "message schedules is disabled (10188)"),
    ("T", {"Nats-Schedule": "never"}, "x", "message schedules pattern is invalid (10189)"),
    ("P", {"Nats-Rollup": "what"}, "x", "rollup not permitted"),
    ("T", {"Nats-Rollup": "what"}, "x", 'rollup value invalid: "what"'),
    (
        "P",
        {"Nats-Expected-Last-Subject-Sequence-Subject": "P.x"},
        "x",
        "missing sequence for expected last sequence per subject (10193)",
    ),
)
"""Stream, headers, body, and what is told of it."""


@dataclass(slots=True)
class Scene:
    """Clients of a server, what they were sent, and where traces go."""

    server: Broker
    stack: AsyncExitStack
    clients: dict[str, Client] = field(default_factory=dict)
    got: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    traces: dict[str, Subscription] = field(default_factory=dict)

    async def client(self, user: str, name: str = "", **more: object) -> Client:
        """A connection; its name is that of the user unless another is given."""
        name = name or user
        if name not in self.clients:
            made = await nats.connect(
                self.server.url, user=user, password=user, name=name, error_cb=_quiet, **more
            )
            self.stack.push_async_callback(made.close)
            self.clients[name] = made
        return self.clients[name]

    async def listen(self, name: str, subject: str, queue: str = "") -> Subscription:
        """Note what a client gets."""

        async def note(message: Msg) -> None:
            self.got.append((message.subject, dict(message.headers or {})))

        made = await self.clients[name].subscribe(subject, queue=queue, cb=note)
        await self.clients[name].flush()
        return made

    async def trace(
        self,
        subject: str,
        headers: dict[str, str],
        *,
        by: str = "a",
        dest: str = "tr.x",
        payload: bytes = b"x",
        reply: str = "",
    ) -> list[str]:
        """Publish, and the steps that were told of it."""
        await self.send(subject, headers, by=by, dest=dest, payload=payload, reply=reply)
        return steps(plain((await self.traces[by + dest].next_msg(30)).data))

    async def send(
        self,
        subject: str,
        headers: dict[str, str],
        *,
        by: str = "a",
        dest: str = "tr.x",
        payload: bytes = b"x",
        reply: str = "",
    ) -> None:
        """Publish, and see to it that everything that is sent because of it has come."""
        client = await self.client("limited" if by == "limited" else by)
        if by + dest not in self.traces:
            listener = await self.client(_account(by))
            self.traces[by + dest] = await listener.subscribe(dest)
            await listener.flush()
        self.got.clear()
        await client.publish(subject, payload, headers=headers, reply=reply)
        for one in (client, *self.clients.values()):
            await one.flush()

    def silent(self, by: str = "a", dest: str = "tr.x") -> bool:
        """Whether no trace has come that was not taken."""
        return self.traces[by + dest].pending_msgs == 0


async def _quiet(error: Exception) -> None:
    """Refusals are expected here."""


def _account(user: str) -> str:
    return "a" if user == "limited" else user


@pytest.fixture
async def scene(server: Broker) -> AsyncIterator[Scene]:
    """Clients `a` of account A and `b` of account B."""
    async with AsyncExitStack() as stack:
        made = Scene(server, stack)
        await made.client("a")
        await made.client("b")
        yield made


only = pytest.mark.parametrize("extra", [{}, ONLY], ids=["delivered", "only"])


@only
async def test_clients_get_it_or_only_are_told_of(scene: Scene, extra: dict[str, str]) -> None:
    await scene.listen("a", "c.>")
    await scene.listen("a", "c.1")
    found = await scene.trace("c.1", {**DEST, **extra, "X": "y"})
    assert found == [INGRESS.format("c.1"), "eg kind=0 name=a sub=c.1", "eg kind=0 name=a sub=c.>"]
    assert len(scene.got) == (0 if extra else 2)
    assert all(headers == {**DEST, "X": "y"} for _, headers in scene.got)


async def test_the_request_is_told(scene: Scene) -> None:
    await scene.send("request", {**DEST, "X": "y"})
    event = plain((await scene.traces["atr.x"].next_msg(30)).data)
    assert event["request"] == {"header": {"Nats-Trace-Dest": ["tr.x"], "X": ["y"]}, "msgsize": 42}
    assert event["server"] == {"name": "one", "cluster": None, "jetstream": True}
    assert "hops" not in event


@only
async def test_one_of_a_queue_group_gets_it(scene: Scene, extra: dict[str, str]) -> None:
    for _ in range(3):
        await scene.listen("a", "q", "g")
    found = await scene.trace("q", {**DEST, **extra})
    assert found == [INGRESS.format("q"), "eg kind=0 name=a queue=g sub=q"]
    assert len(scene.got) == (0 if extra else 1)


@only
async def test_obstacles_are_told(scene: Scene, extra: dict[str, str]) -> None:
    await scene.client("a", "deaf", no_echo=True)
    await scene.listen("deaf", "echo")
    scene.traces["deaftr.x"] = await scene.clients["a"].subscribe("tr.x")
    await scene.clients["a"].flush()
    found = await scene.trace("echo", {**DEST, **extra}, by="deaf")
    reason = "Not delivered because of no echo"
    assert found == [
        "in acc=A kind=0 name=deaf subj=echo",
        f"eg error={reason} kind=0 name=deaf sub=echo",
    ]
    assert scene.got == []


@only
async def test_mappings_are_told(scene: Scene, extra: dict[str, str]) -> None:
    await scene.listen("a", "mapped.*")
    found = await scene.trace("m.1", {**DEST, **extra})
    assert found == [INGRESS.format("m.1"), "eg kind=0 name=a sub=mapped.*", "sm to=mapped.1"]


@only
async def test_imports_of_streams_are_told(scene: Scene, extra: dict[str, str]) -> None:
    await scene.listen("b", "from.>")
    await scene.listen("b", "dark.>")
    found = await scene.trace("st.1", {**DEST, **extra})
    assert found == [
        INGRESS.format("st.1"),
        "eg acc=B kind=0 name=b sub=st.>",
        "se acc=B to=from.st.1",
    ]
    assert len(scene.got) == (0 if extra else 1)
    found = await scene.trace("dk.1", {**DEST, **extra})
    assert found == [INGRESS.format("dk.1"), "se acc=B to=dark.dk.1"]
    assert len(scene.got) == (0 if extra else 1)


@only
async def test_imports_of_services_are_told(scene: Scene, extra: dict[str, str]) -> None:
    await scene.listen("a", "svc.*")
    found = await scene.trace("ask.traced", {**DEST, **extra}, by="b", reply="answer")
    assert found == [
        "in acc=B kind=0 name=b subj=ask.traced",
        "eg acc=A kind=0 name=a sub=svc.*",
        "si acc=A from=ask.traced to=svc.traced",
    ]
    assert len(scene.got) == (0 if extra else 1)


@only
async def test_services_that_do_not_allow_it_are_not_followed(
    scene: Scene, extra: dict[str, str]
) -> None:
    await scene.listen("a", "svc.*")
    found = await scene.trace("svc.plain", {**DEST, **extra}, by="b")
    assert found == [
        "in acc=B kind=0 name=b subj=svc.plain",
        "si acc=A from=svc.plain to=svc.plain",
    ]
    told = [headers["Nats-Trace-Dest"] for _, headers in scene.got]
    assert told == ([] if extra else ["trace disabled"])


@only
async def test_refusals_are_told(scene: Scene, extra: dict[str, str]) -> None:
    scene.traces["limitedtr.x"] = await scene.clients["a"].subscribe("tr.x")
    found = await scene.trace("no", {**DEST, **extra}, by="limited")
    error = 'Permissions Violation for Publish to "no"'
    assert found == [f"in acc=A error={error} kind=0 name=limited subj=no"]
    found = await scene.trace("c.2", {**DEST, **extra}, reply="$JS.ACK.x")
    error = 'Permissions Violation for Publish with Reply of "$JS.ACK.x"'
    assert found == [f"in acc=A error={error} kind=0 name=a subj=c.2"]


@pytest.mark.parametrize(
    ("headers", "delivered"),
    [
        ({"Nats-Trace-Dest": "trace disabled"}, True),
        ({"Nats-Trace-Dest": "a..b"}, True),
        ({"Nats-Trace-Dest": "a..b", **ONLY}, False),
        ({**DEST, "Nats-Trace-Origin-Account": "A"}, True),
        ({**DEST, "Nats-Trace-Origin-Account": "A", **ONLY}, False),
        ({"traceparent": CONTEXT.format(0)}, True),
        (ONLY, True),
    ],
)
async def test_what_is_not_traced(
    scene: Scene, headers: dict[str, str], *, delivered: bool
) -> None:
    await scene.listen("a", "silent")
    await scene.send("silent", headers)
    await scene.send("mark", DEST)
    assert steps(plain((await scene.traces["atr.x"].next_msg(30)).data)) == [INGRESS.format("mark")]
    await scene.send("silent", headers)
    assert len(scene.got) == delivered
    assert scene.silent()


async def test_a_destination_that_is_not_allowed(scene: Scene) -> None:
    await scene.listen("a", "c.3")
    await scene.send("c.3", {"Nats-Trace-Dest": "td.no"}, by="limited", dest="td.no")
    assert scene.got == [] and scene.silent("limited", "td.no")


@pytest.mark.parametrize("name", ["traceparent", "TraceParent"])
async def test_a_trace_context_of_others(scene: Scene, name: str) -> None:
    await scene.listen("a", "ctx")
    found = await scene.trace("ctx", {name: CONTEXT.format(1)}, dest="acc.dest")
    assert found == [INGRESS.format("ctx"), "eg kind=0 name=a sub=ctx"]
    assert len(scene.got) == 1


@only
async def test_a_stream_tells_what_it_makes_of_it(scene: Scene, extra: dict[str, str]) -> None:
    js = scene.clients["a"].jetstream(timeout=30)
    word = "o" if extra else "d"
    name, subject = f"S{word}", f"s{word}.1"
    await js.add_stream(name=name, subjects=[f"s{word}.>"], max_msg_size=200)
    await js.publish(subject, b"", headers={"Nats-Msg-Id": "first"})
    cases: list[tuple[dict[str, str], str]] = [
        ({}, f" subject={subject}"),
        ({"Nats-Expected-Last-Sequence": "77"}, "last sequence mismatch: 77 vs {}"),
        ({"Nats-Expected-Last-Msg-Id": "z"}, 'last msgid mismatch: "z" vs "{id}"'),
        (
            {"Nats-Expected-Last-Subject-Sequence": "55"},
            "last sequence by subject mismatch: 55 vs {}",
        ),
        ({"Nats-Expected-Stream": "Q"}, "expected stream does not match"),
        ({"Nats-TTL": "1s"}, "message TTL disabled"),
        ({"Nats-Rollup": "all"}, "rollup not permitted"),
        ({"Nats-Msg-Id": "first"}, "msgid is duplicate"),
        ({"Pad": "p" * 200}, "maximum payload exceeded"),
    ]
    last, last_id = ("1", "first") if extra else ("2", "")
    for headers, told in cases:
        found = await scene.trace(subject, {**DEST, **extra, **headers})
        text = told.replace("{id}", last_id).replace("{}", last)
        js_step = f"js stream={name}{text}" if told[0] == " " else f"js error={text} stream={name}"
        assert found == [INGRESS.format(subject), js_step]

    async def kept() -> bool:
        return (await js.stream_info(name)).state.messages == (1 if extra else 2)

    await eventually(kept, "what was delivered is stored, what was only traced is not")
    if not extra:
        stored = await js.get_msg(name, 2)
        assert stored.headers == {"Nats-Trace-Dest": "trace disabled"}


@only
async def test_what_a_counter_and_schedules_refuse_has_its_code(
    scene: Scene, extra: dict[str, str]
) -> None:
    """Where an answer names it, and a trace of nats-server says no words of its own."""
    js = scene.clients["a"].jetstream(timeout=30)
    word = "o" if extra else "d"
    for name, options in (
        ("C", {"allow_msg_counter": True, "allow_direct": True}),
        ("P", {}),
        ("T", {"allow_msg_schedules": True, "allow_rollup_hdrs": True}),
    ):
        config = {"name": f"{name}{word}", "subjects": [f"{name}{word}.>"], **options}
        answer = await scene.clients["a"].request(
            f"$JS.API.STREAM.CREATE.{name}{word}", json.dumps(config).encode(), timeout=30
        )
        assert "error" not in json.loads(answer.data), answer.data
    await js.publish(f"C{word}.one", b"", headers={"Nats-Incr": "1"})
    wanted = [f"js error={told} stream={name}{word}" for name, *_, told in REFUSED]
    found: list[str] = []
    for name, headers, body, _ in REFUSED:
        steps_of = await scene.trace(
            f"{name}{word}.one", {**DEST, **extra, **headers}, payload=body.encode()
        )
        found += steps_of[1:]
    assert found == wanted


async def test_a_full_stream_and_one_without_interest(scene: Scene) -> None:
    js = scene.clients["a"].jetstream(timeout=30)
    await js.add_stream(name="F", subjects=["f.>"], discard="new", max_msgs=1)
    await js.add_stream(name="I", subjects=["i.>"], retention="interest")
    await js.publish("f.1", b"")
    found = await scene.trace("f.1", {**DEST, **ONLY})
    # nats-server only looks at the store when it stores.
    assert found[1] in (
        "js stream=F subject=f.1",
        "js error=maximum messages exceeded stream=F subject=f.1",
    )
    found = await scene.trace("f.1", DEST)
    assert found[1] == "js error=maximum messages exceeded stream=F subject=f.1"
    found = await scene.trace("i.1", DEST)
    assert found[1] == "js nointerest=True stream=I subject=i.1"


@only
async def test_the_api_is_another_account(scene: Scene, extra: dict[str, str]) -> None:
    found = await scene.trace("$JS.API.INFO", {**DEST, **extra})
    step = "si acc=$SYS from=$JS.API.INFO to=$JS.API.INFO"
    assert found == [INGRESS.format("$JS.API.INFO"), step]


@pytest.mark.parametrize("accepted", ["gzip", "snappy", "s2", "br"])
async def test_events_come_in_the_encoding_that_is_asked_for(scene: Scene, accepted: str) -> None:
    await scene.send("enc", {**DEST, "Accept-Encoding": accepted})
    message = await scene.traces["atr.x"].next_msg(30)
    encoding = (message.headers or {}).get("Content-Encoding")
    data = message.data
    if accepted == "gzip":
        assert encoding == "gzip"
        data = gzip.decompress(data)
    elif accepted != "br":
        assert encoding == "snappy"
        data = bytes(cramjam.snappy.decompress(data))
    else:
        assert encoding == "identity"
    assert steps(plain(data)) == [INGRESS.format("enc")]


async def test_many_in_one_chunk(scene: Scene) -> None:
    """What publishers send fast takes another way in: nothing of it may be missed there."""
    a = scene.clients["a"]
    traces = await a.subscribe("fast.dest")
    await scene.listen("a", "fast")
    for number in range(200):
        traced = number % 50 == 49
        head = {"Nats-Trace-Dest": "fast.dest"} if traced else {"Nats-Other-Head": "dull.text"}
        await a.publish("fast", b"%03d" % number, headers=head)
    await a.flush()
    found = [plain((await traces.next_msg(30)).data) for _ in range(4)]
    assert all(len(one["events"]) == 2 for one in found)

    async def all_there() -> bool:
        return len(scene.got) == 200

    await eventually(all_there, "the messages themselves")
