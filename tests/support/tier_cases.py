"""What servers do with tiers, as cases that go for a nats-server, a broker, and nodes in a process.

Each has accounts of its own, so that a server serves all of them.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.support import archives
from tests.support.tiers import ANY, Tiers

NO_TIER, NO_STREAMS, NO_CONSUMERS, NO_MEMORY, NO_STORAGE = 10120, 10027, 10026, 10028, 10047
TOO_MANY_REPLICAS, BYTES_REQUIRED, TOO_LARGE = 10074, 10113, 10122
PENDING, FULL, RESTORE_FAILED = 10121, 10002, 10062
KB = bytes(1000)
SENT_MAX = 200


class Scene(ABC):
    """A server, or a cluster, and who asks it."""

    @abstractmethod
    def request(self, account: str, subject: str, payload: bytes) -> bytes:
        """The answer to a user of an account; empty if nobody listens yet."""

    @abstractmethod
    def eventually(self, fact: Callable[[], bool], what: str) -> None:
        """Wait until it is so."""

    @abstractmethod
    def accounts_page(self) -> Any:
        """What monitoring tells of all accounts that have JetStream."""

    def api(self, account: str, subject: str, **body: Any) -> Any:
        """The decoded answer of the API."""
        payload = json.dumps(body).encode() if body else b""
        return json.loads(self.request(account, f"$JS.API.{subject}", payload))

    def code(self, account: str, subject: str, **body: Any) -> int:
        """The error of the answer; 0 if there is none."""
        code: int = self.api(account, subject, **body).get("error", {}).get("err_code", 0)
        return code

    def clear(self, account: str) -> None:
        """The account has no streams any more, and stores nothing."""
        for name in self.api(account, "STREAM.NAMES")["streams"] or ():
            assert self.code(account, f"STREAM.DELETE.{name}") == 0
        self.eventually(lambda: self.api(account, "INFO")["storage"] == 0, "nothing is stored")

    def create(self, account: str, name: str, replicas: int = 1, **more: Any) -> int:
        """The error that a stream is refused with."""
        return self.code(account, f"STREAM.CREATE.{name}", **config(name, replicas, **more))

    def update(self, account: str, name: str, replicas: int = 1, **more: Any) -> int:
        """The error that a change of a stream is refused with."""
        return self.code(account, f"STREAM.UPDATE.{name}", **config(name, replicas, **more))

    def consume(self, account: str, stream: str, name: str, **more: Any) -> int:
        """The error that a consumer is refused with."""
        asked = {"name": name, "ack_policy": "explicit", **more}
        body = {"stream_name": stream, "config": asked}
        return self.code(account, f"CONSUMER.CREATE.{stream}.{name}", **body)

    def tiers(self, account: str) -> Any:
        """What INFO tells of the tiers."""
        return self.api(account, "INFO")["tiers"]

    def restore(self, account: str, name: str, replicas: int, data: bytes) -> int:
        """The error that an archive is refused with in the end."""
        whole = config(name, replicas, retention="limits", storage="file")
        begun = self.api(account, f"STREAM.RESTORE.{name}", config=whole, state=archives.STATE)
        assert "error" not in begun, begun
        target = str(begun["deliver_subject"])
        chunks = [data[at : at + archives.CHUNK] for at in range(0, len(data), archives.CHUNK)]
        for chunk in (*chunks, b""):
            if answer := self.request(account, target, chunk):
                break
        code: int = json.loads(answer).get("error", {}).get("err_code", 0)
        return code

    def put(self, account: str, subject: str) -> int:
        """The error that a message of 1000 bytes is refused with."""
        heard: list[bytes] = []

        def answered() -> bool:
            heard[:] = [self.request(account, subject, KB)]
            return bool(heard[0])

        self.eventually(answered, f"somebody listens on {subject}")
        code: int = json.loads(heard[0]).get("error", {}).get("err_code", 0)
        return code

    def fill(self, account: str, subject: str) -> tuple[int, int]:
        """How many messages are taken until one is not, and why that one is not."""
        for count in range(SENT_MAX):
            if code := self.put(account, subject):
                return count, code
        return SENT_MAX, 0


def config(name: str, replicas: int = 1, **more: Any) -> dict[str, Any]:
    """A stream that listens on its name."""
    return {"name": name, "subjects": [name], "num_replicas": replicas, **more}


def archive(subject: str, count: int, *consumers: str) -> bytes:
    """An archive of some messages of 5000 bytes, and of durable consumers."""
    messages = [archives.message(seq, bytes(5_000), subject=subject) for seq in range(1, count + 1)]
    durables = [
        archives.consumer(name, {"durable_name": name, "name": name, "ack_policy": "explicit"}, {})
        for name in consumers
    ]
    state: dict[str, Any] = {"last_seq": count, "messages": count, "bytes": 5_000 * count}
    state["consumer_count"] = len(consumers)
    return archives.packed(*durables, *messages, **state)


GIVEN = replace(
    ANY,
    mem_storage=5_000,
    disk_storage=10_000,
    streams=3,
    consumer=2,
    max_ack_pending=50,
    mem_max_stream_bytes=4_000,
    disk_max_stream_bytes=8_000,
)
SHOWN = {
    "max_memory": 5_000,
    "max_storage": 10_000,
    "max_streams": 3,
    "max_consumers": 2,
    "max_ack_pending": 50,
    "memory_max_stream_bytes": 4_000,
    "storage_max_stream_bytes": 8_000,
    "max_bytes_required": False,
}
SHOWN_ANY = {**dict.fromkeys(SHOWN, -1), "max_bytes_required": False}
SHOWN_NONE = {**dict.fromkeys(SHOWN, 0), "max_bytes_required": False}
EMPTY = dict.fromkeys(
    ("memory", "storage", "reserved_memory", "reserved_storage", "streams", "consumers"), 0
)

# A server alone.

ALONE: dict[str, Tiers] = {
    "TOLD": {"R1": GIVEN, "R3": ANY},
    "REFUSED": {"R1": GIVEN},
    "REQUIRED": {"R1": replace(ANY, max_bytes_required=True), "R3": ANY},
    "OTHERS": {"R3": ANY},
    "ZERO": {"R1": replace(ANY, streams=0, consumer=0, mem_storage=0)},
    "STORED": {"R1": replace(ANY, disk_storage=5_000)},
    "CHANGED": {"R1": replace(ANY, disk_storage=1_000)},
    "RESTORED": {"R1": replace(ANY, disk_storage=50_000, consumer=1)},
}


def told_alone(scene: Scene) -> None:
    """INFO has each tier, with limits and use of its own."""
    info = scene.api("TOLD", "INFO")
    unused = {"R1": {**EMPTY, "limits": SHOWN}, "R3": {**EMPTY, "limits": SHOWN_ANY}}
    assert {key: info[key] for key in EMPTY} == EMPTY
    assert info["limits"] == SHOWN_NONE
    assert info["tiers"] == unused
    assert scene.create("TOLD", "F", max_bytes=3_000) == 0
    assert scene.create("TOLD", "M", max_bytes=2_000, storage="memory") == 0
    assert scene.consume("TOLD", "F", "c", durable_name="c") == 0
    assert (scene.put("TOLD", "F"), scene.put("TOLD", "M")) == (0, 0)
    info = scene.api("TOLD", "INFO")
    used = {key: info[key] for key in EMPTY}
    assert used["storage"] > 1_000 and used["memory"] > 1_000
    counts = {"reserved_memory": 2_000, "reserved_storage": 3_000, "streams": 2, "consumers": 1}
    assert used == {**used, **counts}
    assert info["limits"] == SHOWN_NONE
    assert info["tiers"] == {**unused, "R1": {**used, "limits": SHOWN}}
    details = scene.accounts_page()["account_details"]
    (detail,) = [one for one in details if one["name"] == "TOLD"]
    found = {key: detail[key] for key in EMPTY if key in detail}
    reserved = dict.fromkeys(("reserved_memory", "reserved_storage"), 0)
    assert found == {"memory": used["memory"], "storage": used["storage"], **reserved}


def refused_alone(scene: Scene) -> None:
    """Each limit of the tier, with its error."""
    create = scene.create
    assert create("REFUSED", "S", replicas=3) == NO_TIER
    assert create("REFUSED", "S", replicas=2) == NO_TIER
    assert create("REFUSED", "S", max_consumers=3) == NO_CONSUMERS
    assert create("REFUSED", "S", max_bytes=8_001) == TOO_LARGE
    assert create("REFUSED", "S", max_bytes=4_001, storage="memory") == TOO_LARGE
    assert create("REFUSED", "S", max_bytes=10_001) == TOO_LARGE
    assert create("REFUSED", "S", max_bytes=10_001, storage="file") == NO_STORAGE
    assert create("REFUSED", "S", max_bytes=5_001, storage="memory") == NO_MEMORY
    assert create("REFUSED", "A", max_bytes=8_000) == 0
    assert create("REFUSED", "S", max_bytes=2_001) == NO_STORAGE
    assert create("REFUSED", "B", max_bytes=2_000) == 0
    assert create("REFUSED", "S") == NO_STORAGE
    assert create("REFUSED", "C", storage="memory") == 0
    assert create("REFUSED", "S", storage="memory") == NO_STREAMS
    assert scene.consume("REFUSED", "A", "c", max_ack_pending=51) == PENDING
    assert scene.consume("REFUSED", "A", "c") == 0
    shown = scene.api("REFUSED", "CONSUMER.INFO.A.c")
    assert shown["config"]["max_ack_pending"] == 50
    assert scene.consume("REFUSED", "A", "d") == 0
    assert scene.consume("REFUSED", "A", "e") == NO_CONSUMERS
    assert scene.consume("REFUSED", "B", "e") == 0


def required_alone(scene: Scene) -> None:
    """Streams of a tier have to name a maximum."""
    assert scene.create("REQUIRED", "S") == BYTES_REQUIRED
    assert scene.create("REQUIRED", "S", replicas=3) == TOO_MANY_REPLICAS
    assert scene.create("REQUIRED", "S", max_bytes=1_000) == 0
    assert scene.update("REQUIRED", "S") == BYTES_REQUIRED


def others_alone(scene: Scene) -> None:
    """An account may have nothing but tiers that a server alone cannot give."""
    assert scene.create("OTHERS", "S") == NO_TIER
    assert scene.create("OTHERS", "S", replicas=3) == TOO_MANY_REPLICAS
    body = {"config": config("S"), "state": {}}
    assert scene.code("OTHERS", "STREAM.RESTORE.S", **body) == NO_TIER
    assert scene.tiers("OTHERS") == {"R3": {**EMPTY, "limits": SHOWN_ANY}}


def zero_alone(scene: Scene) -> None:
    """No number of streams and consumers is any number; no bytes are none."""
    assert scene.create("ZERO", "A") == scene.create("ZERO", "B") == 0
    assert scene.consume("ZERO", "A", "c") == scene.consume("ZERO", "A", "d") == 0
    assert scene.create("ZERO", "S", storage="memory") == NO_MEMORY


def stored_alone(scene: Scene) -> None:
    """Messages are taken until the tier is full."""
    assert scene.create("STORED", "S") == 0
    count, code = scene.fill("STORED", "S")
    assert code == FULL and count >= 4
    assert scene.tiers("STORED")["R1"]["storage"] >= 4_000
    assert scene.code("STORED", "STREAM.PURGE.S") == 0
    scene.eventually(lambda: scene.put("STORED", "S") == 0, "there is room again")


def changed_alone(scene: Scene) -> None:
    """A stream grows as far as the tier has room."""
    assert scene.create("CHANGED", "S", max_bytes=400) == 0
    assert scene.create("CHANGED", "T", max_bytes=500) == 0
    assert scene.update("CHANGED", "S", max_bytes=500) == 0
    assert scene.update("CHANGED", "S", max_bytes=501) == NO_STORAGE
    assert scene.update("CHANGED", "S", max_bytes=100) == 0
    assert scene.update("CHANGED", "S", replicas=3) == TOO_MANY_REPLICAS
    assert scene.tiers("CHANGED")["R1"]["reserved_storage"] == 600


def restored_alone(scene: Scene) -> None:
    """An archive needs the room that its messages take, and may have no more consumers."""
    assert scene.restore("RESTORED", "S", 1, archive("S", 12)) == NO_STORAGE
    assert scene.restore("RESTORED", "S", 1, archive("S", 8, "c")) == 0
    assert scene.restore("RESTORED", "T", 1, archive("T", 8)) == NO_STORAGE
    assert scene.restore("RESTORED", "T", 1, archive("T", 1, "c", "d")) == RESTORE_FAILED


# A cluster of three.

CLUSTERED: dict[str, Tiers] = {
    "TOLD": {"R1": GIVEN, "R3": replace(ANY, disk_storage=20_000)},
    "MADE": {
        "R1": replace(ANY, disk_storage=10_000, streams=2),
        "R3": replace(ANY, disk_storage=10_000, mem_storage=0, streams=1),
    },
    "SCALED": {
        "R1": replace(ANY, disk_storage=10_000, streams=2),
        "R3": replace(ANY, disk_storage=4_000, streams=1),
    },
    "WIDE": {"R3": replace(ANY, disk_storage=10_000)},
    "NARROW": {"R1": ANY},
    "CONSUMED": {
        "R1": replace(ANY, consumer=1, max_ack_pending=11),
        "R3": replace(ANY, consumer=2, max_ack_pending=33),
    },
    "STORED": {"R1": ANY, "R3": replace(ANY, disk_storage=4_000)},
    "RESTORED": {
        "R1": replace(ANY, disk_storage=50_000, consumer=1),
        "R3": replace(ANY, disk_storage=50_000, consumer=2),
    },
}


def told_clustered(scene: Scene) -> None:
    """Streams and consumers count in the tiers of their replicas; bytes once for each of these."""
    unused = {**EMPTY, "limits": SHOWN_ANY | {"max_storage": 20_000}}
    assert scene.tiers("TOLD") == {"R1": {**EMPTY, "limits": SHOWN}, "R3": unused}
    assert scene.create("TOLD", "S", replicas=3, max_bytes=3_000) == 0
    assert scene.consume("TOLD", "S", "three", durable_name="three") == 0
    assert scene.consume("TOLD", "S", "one", num_replicas=1) == 0
    assert scene.put("TOLD", "S") == 0
    sizes = scene.api("TOLD", "STREAM.INFO.S")["state"]["bytes"]
    stored = {**unused, "storage": 3 * sizes, "reserved_storage": 3_000, "streams": 1}
    wanted = {
        "R1": {**EMPTY, "consumers": 1, "limits": SHOWN},
        "R3": {**stored, "consumers": 1},
    }
    scene.eventually(lambda: scene.tiers("TOLD") == wanted, "all replicas are counted")
    info = scene.api("TOLD", "INFO")
    whole = {"storage": 3 * sizes, "reserved_storage": 3_000, "streams": 1, "consumers": 2}
    assert {key: info[key] for key in EMPTY} == EMPTY | whole
    assert info["limits"] == SHOWN_NONE


def made_clustered(scene: Scene) -> None:
    """Limits of one tier know nothing of the other, and what is reserved counts once."""
    create = scene.create
    assert create("MADE", "S", replicas=2) == NO_TIER
    assert create("MADE", "S", replicas=3, max_bytes=10_001) == NO_STORAGE
    assert create("MADE", "S", replicas=3, storage="memory") == NO_MEMORY
    assert create("MADE", "A", replicas=3, max_bytes=10_000) == 0
    assert create("MADE", "S", replicas=3) == NO_STREAMS
    assert create("MADE", "B", max_bytes=9_000) == 0
    assert create("MADE", "S", max_bytes=1_001) == NO_STORAGE
    assert create("MADE", "C", max_bytes=1_000) == 0
    assert create("MADE", "S", storage="memory") == NO_STREAMS
    body = {"config": config("S", 3), "state": {}}
    assert scene.code("MADE", "STREAM.RESTORE.S", **body) == NO_STREAMS
    body = {"config": config("S", 2), "state": {}}
    assert scene.code("MADE", "STREAM.RESTORE.S", **body) == NO_TIER


def scaled_clustered(scene: Scene) -> None:
    """A stream with other replicas is in another tier, with all that it stores."""
    assert scene.create("SCALED", "FULL", replicas=3) == 0
    assert scene.create("SCALED", "S", max_bytes=5_000) == 0
    assert scene.put("SCALED", "S") == 0
    assert scene.update("SCALED", "S", replicas=2, max_bytes=5_000) == NO_TIER
    assert scene.update("SCALED", "S", replicas=3, max_bytes=5_000) == NO_STORAGE
    assert scene.update("SCALED", "S", replicas=3, max_bytes=4_000) == NO_STREAMS
    assert scene.code("SCALED", "STREAM.DELETE.FULL") == 0
    size = scene.api("SCALED", "STREAM.INFO.S")["state"]["bytes"]

    def holds(tier: str, copies: int) -> bool:
        found = scene.tiers("SCALED")
        (other,) = {"R1", "R3"} - {tier}
        told = [found[one][key] for one in (tier, other) for key in ("streams", "storage")]
        return told == [1, copies * size, 0, 0]

    scene.eventually(lambda: holds("R1", 1), "it is in the tier of one replica")
    assert scene.update("SCALED", "S", replicas=3, max_bytes=4_000) == 0
    scene.eventually(lambda: holds("R3", 3), "it is in the tier of three replicas")
    assert scene.create("SCALED", "T", max_bytes=10_000) == 0
    assert scene.update("SCALED", "S", max_bytes=4_000) == NO_STORAGE
    assert scene.code("SCALED", "STREAM.DELETE.T") == 0
    assert scene.update("SCALED", "S", max_bytes=4_000) == 0
    scene.eventually(lambda: holds("R1", 1), "it is back")


def wide_clustered(scene: Scene) -> None:
    """An account without the tier of one replica."""
    assert scene.create("WIDE", "S") == NO_TIER
    assert scene.create("WIDE", "S", replicas=3) == 0
    assert scene.consume("WIDE", "S", "c") == NO_TIER
    assert scene.consume("WIDE", "S", "c", num_replicas=1) == NO_TIER
    assert scene.consume("WIDE", "S", "c", durable_name="c") == 0
    assert scene.update("WIDE", "S") == NO_TIER
    assert scene.update("WIDE", "S", max_bytes=10_001) == NO_STORAGE
    assert scene.update("WIDE", "S", replicas=3, max_bytes=10_000) == 0


def narrow_clustered(scene: Scene) -> None:
    """An account without the tier of three."""
    assert scene.create("NARROW", "S", replicas=3) == NO_TIER
    assert scene.create("NARROW", "S") == 0
    assert scene.update("NARROW", "S", replicas=3) == NO_TIER
    assert scene.update("NARROW", "S", replicas=2) == NO_TIER
    assert scene.consume("NARROW", "S", "c", durable_name="c") == 0


def consumed_clustered(scene: Scene) -> None:
    """Consumers of one stream are in several tiers."""
    assert scene.create("CONSUMED", "S", replicas=3) == 0
    assert scene.consume("CONSUMED", "S", "a", max_ack_pending=34, durable_name="a") == PENDING
    assert scene.consume("CONSUMED", "S", "a", durable_name="a") == 0
    assert scene.consume("CONSUMED", "S", "b", durable_name="b") == 0
    assert scene.consume("CONSUMED", "S", "c", durable_name="c") == NO_CONSUMERS
    assert scene.consume("CONSUMED", "S", "c", num_replicas=2) == NO_TIER
    assert scene.consume("CONSUMED", "S", "d", num_replicas=1, max_ack_pending=12) == PENDING
    assert scene.consume("CONSUMED", "S", "d", num_replicas=1) == 0
    assert scene.consume("CONSUMED", "S", "e", num_replicas=1) == NO_CONSUMERS
    assert scene.consume("CONSUMED", "S", "a", durable_name="a", description="again") == 0
    shown = [scene.api("CONSUMED", f"CONSUMER.INFO.S.{name}") for name in ("a", "d")]
    assert [one["config"]["max_ack_pending"] for one in shown] == [33, 11]
    assert scene.create("CONSUMED", "T") == 0
    assert scene.consume("CONSUMED", "T", "a", durable_name="a") == 0


def stored_clustered(scene: Scene) -> None:
    """Each replica may hold as much as the tier is limited to."""
    assert scene.create("STORED", "S", replicas=3) == 0
    assert scene.create("STORED", "FREE") == 0
    count, code = scene.fill("STORED", "S")
    assert code == FULL and count >= 3
    scene.eventually(lambda: scene.put("STORED", "S") == FULL, "it is full for good")
    scene.eventually(
        lambda: scene.tiers("STORED")["R3"]["storage"] > 9_000, "all replicas are counted"
    )
    assert scene.put("STORED", "FREE") == 0


def restored_clustered(scene: Scene) -> None:
    """Restored replicas are as many as the tier says."""
    # A nats-server keeps the name of what it could not restore.
    assert scene.restore("RESTORED", "U", 3, archive("U", 12)) == NO_STORAGE
    assert scene.restore("RESTORED", "S", 3, archive("S", 8, "c", "d")) == 0
    assert scene.restore("RESTORED", "T", 1, archive("T", 8)) == 0


Case = tuple[str, Callable[[Scene], None]]
"""The account, which has to be cleared, and what is done with it."""
ALONE_CASES: list[Case] = [
    ("TOLD", told_alone),
    ("REFUSED", refused_alone),
    ("REQUIRED", required_alone),
    ("OTHERS", others_alone),
    ("ZERO", zero_alone),
    ("STORED", stored_alone),
    ("CHANGED", changed_alone),
    ("RESTORED", restored_alone),
]
CLUSTERED_CASES: list[Case] = [
    ("TOLD", told_clustered),
    ("MADE", made_clustered),
    ("SCALED", scaled_clustered),
    ("WIDE", wide_clustered),
    ("NARROW", narrow_clustered),
    ("CONSUMED", consumed_clustered),
    ("STORED", stored_clustered),
    ("RESTORED", restored_clustered),
]


def name_of(case: Case) -> str:
    """For reports."""
    return case[0].lower()


def play(scene: Scene, case: Case) -> None:
    """One case."""
    account, steps = case
    scene.clear(account)
    steps(scene)
