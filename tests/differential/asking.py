"""How a case asks both servers: every answer is compared as it comes."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from tests.differential.backups import restore, take
from tests.differential.twins import Headers, Twins, block_of, differences, plain, without
from tests.differential.values import filled

Found = tuple[str, str, list[str]]
"""Subject, body, and how the answers differ."""
MANY = "all of "
"""Before a subject that is answered with several messages."""
WRONG_LAST_ID, UNAVAILABLE = 10070, 10008
ENDS_NS = 5_000_000_000
"""How long nobody may ask a consumer without a durable name."""
NO_MESSAGES, TIMED_OUT = ["NATS/1.0 404 No Messages"], "NATS/1.0 408 Request Timeout"
WAITING = ".num_ack_pending:"
"""Counts what is gone, too, where a consumer has other filters by then: docs/differences.md."""
FLOOR = ".ack_floor."
"""What is below it is another matter behind a purge by subject: docs/differences.md."""


def another_mistake(real: Any, ours: Any) -> bool:
    """Whether a publish is refused by both, or is a duplicate here: which of several mistakes is
    told depends on the number of replicas there (docs/differences.md). Nothing is stored."""
    if not isinstance(real, dict) or not isinstance(ours, dict) or "error" not in real:
        return False
    return "error" in ours or bool(ours.get("duplicate"))


def unanswered(real: Any, ours: Any) -> bool:
    """Whether nothing is said there to what is refused here: docs/differences.md."""
    return real == "" and isinstance(ours, dict) and "error" in ours


def moving_in(subject: str, body: Any) -> str:
    """Where the answer of a cluster tells what goes on while it is written: a stream that begins to
    keep only what somebody wants lets go of all else before that or behind it, there."""
    begins = isinstance(body, dict) and body.get("retention") == "interest"
    return ".state." if begins and subject.startswith("STREAM.UPDATE.") else ""


def beyond_all(subject: str, real: Any) -> str:
    """Where the answer of a cluster is another one for a page behind the last one of a list."""
    empty = ".LIST" in subject and isinstance(real, dict) and real.get("total") == 0
    return ".total:" if empty and real.get("offset") else ""


def level_of_paused(subject: str, real: Any) -> str:
    """Where the answer of a cluster is another one for a paused consumer that was updated: it needs
    no API level there, though it is paused (docs/differences.md)."""
    paused = isinstance(real, dict) and real.get("config", {}).get("pause_until")
    return ".config.metadata._nats.req.level:" if paused and "CONSUMER." in subject else ""


def ends_of_pulls(real: Any, ours: Any) -> Any:
    """What came there, with the words that end a pull without waiting here, when it had some of its
    messages: they are others where a consumer has several replicas (docs/differences.md)."""
    if len(real) != len(ours) or len(real) < 2 or ours[-1][0] != NO_MESSAGES:
        return real
    return [*real[:-1], ours[-1]] if real[-1][0][0] == TIMED_OUT else real


def made_durable(real: Any, ours: Any) -> bool:
    """Whether a consumer got a durable name, and there goes all the same when nobody asks it:
    docs/differences.md."""
    if not isinstance(real, dict) or not isinstance(ours, dict):
        return False
    theirs, own = real.get("config", {}), ours.get("config", {})
    ends = theirs.get("inactive_threshold") == ENDS_NS and "inactive_threshold" not in own
    return ends and "durable_name" in own


def of_its_undoing(subject: str, real: Any) -> bool:
    """Whether a create is answered as a delete is: what a cluster there could not make, it deletes,
    and tells who asked to make it of that, now and then before anything else: docs/differences.md.
    """
    kind = real.get("type", "") if isinstance(real, dict) else ""
    return ".CREATE." in f".{subject}" and kind.endswith("_delete_response")


class Apart(Exception):
    """The servers said different things, so that what they hold is different from here on."""


class Ask:
    """Asks both for a word of the API, or publishes to a subject of small letters.

    Raises Apart when they do not say the same; `found` tells what.
    """

    def __init__(self, twins: Twins, name: str, random: Random) -> None:
        self._twins = twins
        self._name = name
        self.alone = twins.alone
        self._random = random
        self._floors = True
        self._pending = True
        self._waiting = True
        self._put_back = False
        self._said = ""
        self.found: list[Found] = []

    def filled(self, value: Any) -> Any:
        """A drawn value with the names of this case in it."""
        return filled(value, self._name.lower())

    def __call__(
        self, subject: str, body: Any, headers: Headers | None = None, chance: tuple[str, ...] = ()
    ) -> Any:
        """The answer. Differences that begin with words of `chance` are none."""
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [(key, self._named(value)) for key, value in headers or ()]
        sent = block_of(lines)
        plain = subject[:1].islower()
        whole = subject if plain else f"{self._prefix()}{subject}"
        shown = (sent[10:] + payload).decode("utf-8", "replace")
        real, ours = self._twins.ask(whole, payload, sent)
        error = real.get("error", {}) if isinstance(real, dict) else {}
        if not self.alone and error.get("err_code") == UNAVAILABLE:
            raise Apart  # for a moment; what is asked for may happen all the same
        if not self.alone and error.get("err_code") == WRONG_LAST_ID and real == ours:
            raise Apart  # The stream there is stuck from here on: docs/differences.md.
        if made_durable(real, ours) or of_its_undoing(subject, real):
            raise Apart
        if plain and (another_mistake(real, ours) if self.alone else unanswered(real, ours)):
            return real
        self._same(subject, shown, real, ours, *self._other(subject, body, real), *chance)
        if "LEADER.STEPDOWN." in subject and real.get("success"):
            self._twins.settle("$JS.API." + subject.replace("LEADER.STEPDOWN", "INFO"))
        return real

    def several(self, subject: str, body: Any) -> Any:
        """Asks for what is answered with messages."""
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        real, ours = self._twins.ask_all(f"{self._prefix()}{subject}", payload)
        if not self.alone and b"no_wait" in payload:
            real = ends_of_pulls(real, ours)
        if not self._pending:
            real, ours = list(map(_without_pending, real)), list(map(_without_pending, ours))
        return self._same(MANY + subject, payload.decode("utf-8", "replace"), real, ours)

    def say(self, subject: str, body: Any, reply: str, headers: Headers | None = None) -> None:
        """Published with a subject for answers; `heard` tells them."""
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._said = f"{subject} {payload.decode('utf-8', 'replace')} {reply} {headers}"
        lines = [(key, self._named(value)) for key, value in headers or ()]
        self._twins.say(subject, payload, reply, lines)

    def until(self, subject: str, body: Any, ready: Callable[[Any], bool]) -> Any:
        """The answer when it is what was waited for on both."""
        payload = json.dumps(body).encode()
        real, ours = self._twins.until(f"$JS.API.{subject}", payload, ready)
        return self._same(subject, payload.decode(), real, ours)

    def counted(self, subject: str) -> Any:
        """An info of a consumer, when the real server counts what waits as ours does, or as it is
        when that takes too long: its leader may have counted before it had the messages."""
        whole = f"{self._prefix()}{subject}"
        real, ours = self._twins.ask(whole, b"")
        if "num_pending" in ours and not self.alone:
            wanted = ours["num_pending"]
            there = self._twins.sides[0]
            real = there.until(whole, b"", lambda found: found.get("num_pending") == wanted)
        return self._same(subject, "", real, ours, *self._other(subject, b"", real))

    def exchanged(self, stream: str, *, no_consumers: bool, consumed: bool) -> bool:
        """Takes the stream from both servers, and gives each what the other one had; whether it is
        there again.

        Both get the broker's where a cluster has `consumed` consumers: what was delivered last may
        be missing in the other one (docs/differences.md)."""
        asked = {"no_consumers": no_consumers}
        theirs, own = (take(side.client, stream, **asked) for side in self._twins.sides)
        self._same(f"STREAM.SNAPSHOT.{stream}", str(asked), without(theirs[0]), without(own[0]))
        if "error" in theirs[0]:
            return False
        gone = self._twins.ask(f"$JS.API.STREAM.DELETE.{stream}", b"")
        self._same(f"STREAM.DELETE.{stream}", "", *gone)
        given = (own, theirs if self.alone or not consumed else own)
        real, ours = (
            plain(restore(side.client, answer["config"], data))
            for side, (answer, data) in zip(self._twins.sides, given, strict=True)
        )
        other = () if self.alone else (".cluster:",)  # Not told there: docs/differences.md.
        if "error" in self._same(f"STREAM.RESTORE.{stream}", "", real, ours, *other):
            return False
        if not self.alone:  # A consumer's leader counts there what its own server has.
            self._twins.catch_up(stream)
        return True

    def acknowledge(self, place: int, body: bytes, policy: object = "") -> Any:
        """Says `body` about a message that was delivered, the last one is at -1.

        By the policy `all` only of that, once something was put back: docs/differences.md.
        """
        if policy == "all":
            place = -1 if self._put_back else place
            self._put_back = self._put_back or body.startswith(b"-NAK")
        found = self._twins.acknowledge(place, body)
        return found and self._same(f"acknowledge {place}", body.decode(), *found)

    def listen(self, subject: str, queue: str = "") -> None:
        """From here on `heard` tells what comes to it."""
        self._twins.listen(subject, queue)

    def heard(self) -> Any:
        """What has come to the subject that is listened to."""
        real, ours = self._twins.heard()
        if not self._pending:
            real, ours = list(map(_without_pending, real)), list(map(_without_pending, ours))
        return self._same("heard", self._said, real, ours)

    def enter(self, user: str) -> None:
        """Until the case ends another account's clients ask."""
        self._twins.enter(user)

    def forget_floors(self) -> None:
        """From here on acknowledgement floors of consumers are not compared."""
        self._floors = False

    def forget_waiting(self) -> None:
        """From here on it is not compared how many messages wait for their acknowledgement."""
        self._waiting = False

    def forget_pending(self) -> None:
        """From here on it is not compared how many messages wait behind one that is delivered."""
        self._pending = False

    def _prefix(self) -> str:
        return "$JS.D.API." if self._random.random() < 0.2 else "$JS.API."

    def _named(self, value: str) -> str:
        return value.replace("{n}", self._name).replace("{p}", self._name.lower())

    def _other(self, subject: str, body: Any, real: Any) -> list[str]:
        """Where the answer of a cluster is known to be another one."""
        if self.alone:
            return []
        places = (
            *(moving_in(subject, body), beyond_all(subject, real)),
            level_of_paused(subject, real),
        )
        return [place for place in places if place]

    def _same(self, subject: str, shown: str, real: Any, ours: Any, *other: str) -> Any:
        lines = list(differences(real, ours))
        lines = [line for line in lines if not line.startswith(other)]
        if not self._floors:
            lines = [line for line in lines if not line.startswith(FLOOR)]
        if not self._waiting:
            lines = [line for line in lines if not line.startswith(WAITING)]
        if lines:
            self.found.append((subject, shown, lines))
            raise Apart
        return real


def _without_pending(message: list[Any]) -> list[Any]:
    """Its reply subject, if there is one, ends with the number."""
    *rest, reply = message
    return [*rest, reply.rpartition(".")[0] if isinstance(reply, str) else reply]
