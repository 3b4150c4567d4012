"""A broker in miniature: handlers, meta state and streams of one server, without node or wire.

Decisions are carried out at once: every entry is applied as soon as it is proposed.
"""

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from jsctl.api.stream import ReplicaDamage, SourceInfo
from jsctl.broker.handlers import answers, api, direct, lists, streams
from jsctl.broker.handlers.decisions import (
    Decision,
    Gather,
    ProposeGroup,
    ProposeMeta,
    RemoveMetaPeer,
    Replies,
    Reply,
    StepDown,
)
from jsctl.broker.handlers.told import stream_texts
from jsctl.broker.handlers.view import AccountUsage, GroupView, PeerView
from jsctl.broker.jetstream.config_texts import STREAMS
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.leader import ConsumerLeader
from jsctl.broker.jetstream.meta.assignments import GroupAssignment, StreamAssignment
from jsctl.broker.jetstream.meta.placement import ServerFacts
from jsctl.broker.jetstream.meta.state import ChangeKind, Meta
from jsctl.broker.jetstream.quotas import ALL, AccountQuota, TierLimits
from jsctl.broker.jetstream.requests import ApiRequest, ClientInfo
from jsctl.broker.jetstream.streams.admission import StreamLeader
from jsctl.broker.jetstream.streams.config import ConfigLimits
from jsctl.broker.jetstream.streams.entries import decode
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.store.memory_store import MemoryStore
from jsctl.broker.store.record import Publish
from jsctl.broker.subject.matching import matches

SECOND = 10**9


class Rig:
    """A `View` of `servers` servers, seen from the first, which leads everything."""

    def __init__(self, servers: int = 1) -> None:
        self.now_ns = 1_700_000_000 * SECOND
        self.me = "peer0"
        self.server_name = "n0"
        self.clustered = servers > 1
        self.cluster = "C1" if self.clustered else ""
        self.domain = ""
        self.unique_tag = ""
        self.config_limits = ConfigLimits()
        self._random = Random(1)
        self.meta = Meta()
        self.facts = [ServerFacts(f"peer{i}", f"n{i}", self.cluster) for i in range(servers)]
        self.leaders: dict[str, StreamLeader] = {}
        self.decisions: list[Decision] = []
        self.limits: dict[str, Any] = {}
        self.tiers: dict[str, dict[str, Any]] = {}
        """Limits of the account by tier, in place of `limits`."""
        self.usage = AccountUsage()
        self.interest = True
        """Whether consumers want what interest streams are given."""
        self._index = 0

    # The view.

    def jitter(self, count: int, /) -> int:
        return self._random.randrange(count)

    def servers(self) -> list[ServerFacts]:
        return self.facts

    def account(self, name: str) -> AccountQuota | None:
        if name == "NOJS":
            return None
        given = self.tiers or {ALL: self.limits}
        tiers = {tier: TierLimits(tier=tier, **limits) for tier, limits in given.items()}
        return AccountQuota(name, tiers=tiers)

    def account_usage(self, name: str) -> AccountUsage:
        return self.usage

    def stream(self, account: str, name: str) -> Stream | None:
        leader = self.leaders.get(name)
        return None if leader is None else leader.stream

    def stream_leader(self, account: str, name: str) -> StreamLeader | None:
        return self.leaders.get(name)

    def upstreams(self, account: str, name: str) -> list[SourceInfo]:
        return []

    def consumer(self, account: str, stream: str, name: str) -> Consumer | None:
        return None

    def consumer_leader(self, account: str, stream: str, name: str) -> ConsumerLeader | None:
        return None

    def wake_consumer(self, account: str, stream: str, name: str) -> None:
        raise AssertionError("nothing is led here")

    def leader_of(self, group: str) -> str:
        return self.me

    def group(self, name: str) -> GroupView | None:
        for made in self.meta.assets():
            if made.group.name == name:
                others = [one for one in self.facts if one.peer in made.group.members]
                replicas = [
                    PeerView(one.peer, one.name, True, not one.online, 5, 0)
                    for one in others
                    if one.peer != self.me
                ]
                return GroupView(name, self.cluster, "n0", self.now_ns, replicas, True)
        return None

    def damage(self, assigned: GroupAssignment) -> tuple[ReplicaDamage, ...]:
        return ()

    def has_interest(self, account: str, subject: bytes) -> bool:
        return False

    def new_name(self, length: int) -> str:
        return "".join(self._random.choices("abcdefghijk", k=length))

    # Requests.

    def decide(self, subject: str, payload: bytes = b"", **request: Any) -> Decision | None:
        """What the handlers decide, without carrying it out."""
        made = ApiRequest(
            request.pop("account", "A"),
            f"$JS.API.{subject}".encode(),
            b"r",
            request.pop("headers", b""),
            payload,
            ClientInfo("A", cluster=self.cluster),
            self.me,
            **request,
        )
        resolved = api.resolve(made.subject)
        if resolved is None:
            return None
        return api.answer(self, made, resolved)

    def ask(self, subject: str, payload: bytes | dict[str, Any] = b"", **request: Any) -> Any:
        """The decoded answer to a request; None if there is none."""
        body = json.dumps(payload).encode() if isinstance(payload, dict) else payload
        if subject.startswith("DIRECT.GET."):
            return self.direct(subject, body)
        decision = self.decide(subject, body, **request)
        if decision is None:
            return None
        self.decisions.append(decision)
        answer = self._carry_out(decision)
        return None if answer is None else json.loads(answer)

    def direct(self, subject: str, payload: bytes = b"") -> list[tuple[bytes, bytes]]:
        """(headers, payload) of each answer to a direct get."""
        name, _, literal = subject.removeprefix("DIRECT.GET.").partition(".")
        replies, rest = direct.begin(self.leaders[name].stream, payload, literal.encode())
        for some in rest or ():
            assert isinstance(some, list), "nothing is damaged here"
            replies.messages.extend(some)
        return [(one.headers, one.payload) for one in replies.messages]

    def _carry_out(self, decision: Decision) -> bytes | None:
        match decision:
            case Reply():
                return decision.payload
            case ProposeMeta():
                return self._apply_meta(decision.entries) or decision.reply
            case ProposeGroup():
                return self._apply_group(decision)
            case StepDown():
                return decision.reply
            case RemoveMetaPeer():
                self._apply_meta(decision.entries)
                return decision.reply
            case Gather():
                return self._gather(decision)
            case Replies():
                raise AssertionError("requests are not answered by several messages")
        return None

    def _apply_meta(self, entries: Sequence[bytes]) -> bytes | None:
        answer = None
        self.meta.note_in_flight(entries)
        for entry in entries:
            self._index += 1
            self.meta.apply(self._index, entry)
        for change in self.meta.take_changes():
            made = change.after
            if change.consumer or change.server:
                continue
            if change.kind is ChangeKind.REMOVED:
                self.leaders.pop(change.stream, None)
            elif isinstance(made, StreamAssignment):
                answer = self._build(made, change.kind is ChangeKind.ADDED)
        return answer

    def _build(self, made: StreamAssignment, is_new: bool) -> bytes | None:
        if is_new:
            stream = Stream(made.account, made.config, made.created_ns, MemoryStore())
            self.leaders[made.name] = StreamLeader(stream, interested=lambda subject: self.interest)
        leader = self.leaders[made.name]
        if made.revision != leader.stream.revision:
            self._log(leader, [leader.configure(made.revision, made.config)])
        if made.request is None:
            return None
        return streams.create_response(self, made, leader.stream)

    def _log(self, leader: StreamLeader, entries: Sequence[bytes]) -> int:
        result = 0
        leader.proposed(leader.stream.applied + 1)
        for entry in entries:
            result = leader.stream.apply(leader.stream.applied + 1, decode(entry))
        leader.applied(leader.stream.applied)
        return result

    def _apply_group(self, decision: ProposeGroup) -> bytes | None:
        by_group = {
            made.group.name: made.name
            for made in self.meta.assets()
            if isinstance(made, StreamAssignment)
        }
        result = self._log(self.leaders[by_group[decision.group]], decision.entries)
        return decision.reply(result) if callable(decision.reply) else decision.reply

    def _gather(self, decision: Gather) -> bytes:
        infos: dict[tuple[str, str], bytes] = {}
        for stream, consumer in decision.assets:
            made = self.meta.stream("A", stream)
            assert made is not None and not consumer
            leader = self.leaders[stream]
            begins = stream_texts.begun(lists.listed(STREAMS, made.config), made.created_ns)
            cluster = answers.group_text(self, made.group) if self.clustered else ""
            text = stream_texts.info_text(
                self, made, leader.stream, begins, (), domain=self.domain, cluster=cluster
            )
            infos[(stream, consumer)] = text.encode()
        return lists.finish(decision, infos)

    # Messages.

    def publish(self, subject: str, payload: bytes = b"", headers: bytes = b"") -> Any:
        """The decoded ack; None if no stream took it."""
        for name, leader in self.leaders.items():
            config = leader.stream.config
            if any(_matches(one, subject) for one in config.subjects):
                batch: list[Publish] = [(subject.encode(), b"r", headers, payload, None)]
                made = leader.admit(batch, self.now_ns)
                if made.entries:
                    self._log(leader, made.entries)
                    return json.loads(next(iter(made.acks[0]))[1])
                return json.loads(made.rejects[0][1]) if made.rejects else name
        return None


def _matches(pattern: str, subject: str) -> bool:
    return matches(subject.encode(), pattern.encode())
