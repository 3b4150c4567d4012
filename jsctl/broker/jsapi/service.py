"""The JetStream API: requests come in anywhere, the right leader decides, the asker is answered.

A request is handled on the server it enters or, when another server has to decide, forwarded to
it inside a peer frame; the answer goes back the same way and is published where the request came
in. A request whose leader is not known waits a little: most of the time one is being elected. So
does one that was forwarded to a server that does not lead any more; then it is forwarded on.
"""

from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from jsctl.api.errors import api_error
from jsctl.broker import lazy
from jsctl.broker.assets.engine import Engine
from jsctl.broker.assets.meta.group_file import META_GROUP
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.handlers.decisions import (
    AuditStream,
    AwaitRepair,
    BeginRestore,
    CheckStream,
    Decider,
    Decision,
    Gather,
    MakeDirect,
    ProposeGroup,
    ProposeMeta,
    RemoveMetaPeer,
    Replies,
    Reply,
    Rescue,
    SendSnapshot,
    SignHead,
    Silent,
    StepDown,
)
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jsapi.answer_publisher import AnswerPublisher
from jsctl.broker.jsapi.archives.archives import Archives
from jsctl.broker.jsapi.archives.subjects import is_internal
from jsctl.broker.jsapi.deciding.confirming import Confirming
from jsctl.broker.jsapi.deciding.damaged_reads import DamagedReads
from jsctl.broker.jsapi.deciding.held import HELD_MAX, HeldRequest
from jsctl.broker.jsapi.deciding.placing import Placing
from jsctl.broker.jsapi.deciding.searches import search_units
from jsctl.broker.jsapi.deciding.settling import Settling
from jsctl.broker.jsapi.farewells import Farewells
from jsctl.broker.jsapi.forwarded import Forwarded, SentRequest
from jsctl.broker.jsapi.gathering import Gathering
from jsctl.broker.jsapi.live_view import ApiView
from jsctl.broker.jsapi.overtaken import Overtaken
from jsctl.broker.jsapi.served import Serving
from jsctl.broker.jsapi.step_downs import StepDowns
from jsctl.broker.peers.items import Answered, Forward, ForwardReply, Returned
from jsctl.broker.sessions.last_line import LastLine
from jsctl.broker.sessions.request_budget import ANSWER_BYTES, REQUEST_UNITS, RequestBudget
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.broker.handlers import api, sourcing_consumers
    from jsctl.broker.handlers.api import Route
    from jsctl.broker.jsapi import check_answers, rescuing
else:
    api = lazy.module("jsctl.broker.handlers.api")
    sourcing_consumers = lazy.module("jsctl.broker.handlers.sourcing_consumers")
    check_answers = lazy.module("jsctl.broker.jsapi.check_answers")
    rescuing = lazy.module("jsctl.broker.jsapi.rescuing")

GATHERED_NS = 4_000_000_000
"""What others did not tell so long after a request came in is told as missing."""
RETRY_NS = 50_000_000
HOPS_MAX = 4
"""Servers that may pass on a request whose leader changes while it is under way."""


@dataclass(slots=True)
class ApiService:
    """See the module."""

    view: ApiView
    engine: Engine
    publisher: AnswerPublisher
    audit: Callable[[ApiRequest, bytes], None]
    """Told of each answer that this server decided on."""
    budget: RequestBudget
    line: LastLine | None = None
    """None: a bug in a handler goes up to the caller, for tests that look for them."""
    settling: Settling = field(init=False)
    serving: Serving = field(init=False)
    gathering: Gathering = field(init=False)
    farewells: Farewells = field(init=False)
    overtaken: Overtaken = field(init=False)
    step_downs: StepDowns = field(init=False)
    archives: Archives = field(init=False)
    forwarded: Forwarded = field(init=False)
    """Requests that came in here."""
    passed_on: Forwarded = field(init=False)
    """Requests of other servers, of which another one is to be told."""
    _placing: Placing = field(init=False)
    _damaged: DamagedReads = field(init=False)
    confirming: Confirming = field(init=False)
    held: list[HeldRequest] = field(default_factory=list)
    _retry_due_ns: int = 0

    def __post_init__(self) -> None:
        self._placing = Placing(self.view)
        self._damaged = DamagedReads(self.engine.context)
        self.settling = Settling(self.view, self.engine)
        self.serving = Serving(self.view, self.budget, self.answer)
        self.gathering = Gathering(
            self.view, self.engine, self.budget, self.answer, self.settling.behind
        )
        self.confirming = Confirming(
            self.engine, self._placing, self.settling, self.budget, self._decide, self._hold_anew
        )
        self.step_downs = StepDowns(self.view, self.engine, self.answer)
        liveness = self.engine.cluster.liveness
        self.forwarded = Forwarded(self._boot_of, liveness.is_up)
        self.passed_on = Forwarded(self._boot_of, liveness.is_up)
        self.archives = Archives(self.view, self.engine, self.gathering, self.answer, self.take)
        self.overtaken = Overtaken(
            self.view, self._placing, self.forwarded.waits, self._answer_last
        )
        self.farewells = Farewells(
            self.view, self.engine, self.gathering.new_token, self.answer, self.settling.removed
        )

    def _boot_of(self, peer: str) -> int:
        liveness = self.engine.cluster.liveness
        life = liveness.life(peer)
        there = life is not None and (life.up or liveness.has_way(peer))
        return life.boot if life is not None and there else 0

    # Where a request has to go

    def place(self, request: ApiRequest) -> str | None:
        """The group that decides on a request; None if nobody does. Changes nothing."""
        return self._placing.place(request)

    def take(self, request: ApiRequest, hops: int = 0, age_ns: int = 0) -> None:
        """A request came in, here or by a peer's forward, through so many servers."""
        if self.archives.taken(request):
            return
        if not hops:
            self.forwarded.anew(request)
        self._route(HeldRequest(request, self.view.now_ns - age_ns, hops), waited=False)

    def _route(self, held: HeldRequest, *, waited: bool) -> None:
        request = held.request
        target = self._placing.target(request)
        if target is None or (held.again and not self.forwarded.waits(request)):
            return
        if target is Decider.EVERY_SERVER:
            self._tell_all(held)
            return
        group = self._placing.group_of(target, request)
        leader = self.engine.cluster.leader_of(group)
        mine = self.engine.groups.by_name.get(group)
        if mine is not None and mine.leading:
            self.confirming.begin(mine, held)
        elif self._is_reached(leader) and self._may_pass_on(held, waited):
            now_ns = self.view.now_ns
            forward = Forward(held.hops + 1, request, max(now_ns - held.asked_ns, 0))
            sent = self.forwarded if request.entry == self.view.me else self.passed_on
            # Who decides answers a foreign asker himself, and two who decide would both.
            repeatable = self._placing.only_asks(request) and not request.is_foreign
            again = held.hops > 0 or held.again
            sent.sent(request, leader, now_ns, held.asked_ns, again=again, repeatable=repeatable)
            self.engine.outbox.parcel(leader).forwards.append(forward)
        else:
            self._hold(held)

    def _tell_all(self, held: HeldRequest) -> None:
        """Each server answers for itself, whoever leads."""
        if not held.hops:
            self.forwarded.asked_all(held.request)
            for peer in self.engine.cluster.peers_up():
                self.engine.outbox.parcel(peer).forwards.append(Forward(1, held.request))
        self.confirming.take(held)

    def _is_reached(self, leader: str) -> bool:
        """Whether a leader is another server, and there is a way to it."""
        return bool(leader) and self.engine.cluster.liveness.has_way(leader)

    @staticmethod
    def _may_pass_on(held: HeldRequest, waited: bool) -> bool:
        """At once where it came in. Elsewhere the sender took this server for the leader, and may
        know better: after a moment, and not for ever."""
        return held.hops == 0 or (waited and held.hops < HOPS_MAX)

    # Waiting for a leader

    def _hold(self, held: HeldRequest) -> None:
        if self.view.now_ns >= held.until_ns:
            self._leaderless(held)
        elif len(self.held) < HELD_MAX:
            self.held.append(held)

    def _hold_anew(self, held: HeldRequest) -> None:
        """This server was to decide, and does not lead any more."""
        self._hold(HeldRequest(held.request, held.asked_ns, max(held.hops, 1), held.again))

    def _leaderless(self, held: HeldRequest) -> None:
        """Nobody leads for a while: say so, or tell what is known here."""
        request = held.request
        target = self._placing.target(request)
        if target is None:
            return
        group = self._placing.group_of(target, request)
        # What is not known here may have been made by a leader that this server has not heard.
        known = group != META_GROUP and group in self.engine.groups.by_name
        if known and b".STREAM.INFO." in request.subject:
            self._decide(held, final=False)
        else:
            self.answer(request, self._placing.unavailable(request))

    def give_back(self, request: ApiRequest, *, untouched: bool) -> None:
        """A request of another server is not answered from here, nor by whom it was passed on."""
        if not request.reply:
            return
        told = Returned(request.account, request.reply, request.subject, untouched)
        self.engine.outbox.parcel(request.entry).returned.append(told)

    def returned(self, told: Returned) -> None:
        """A request that came in here is not answered by who was to decide on it."""
        sent = self.forwarded.returned(told.account, told.reply, told.subject)
        if sent is None:
            return
        if told.untouched and not sent.repeatable:
            self._hold(HeldRequest(sent.request, sent.asked_ns, 0))
        else:
            self._undecided(sent)

    def _undecided(self, sent: SentRequest) -> None:
        """Who was to decide is gone, and may have done it; a question may be asked twice."""
        if sent.repeatable:
            self.forwarded.ask_again(sent, self.view.now_ns)
            self._hold(HeldRequest(sent.request, sent.asked_ns, 0, again=True))
        else:
            self._give_up(sent.request)

    def interrupted(self, peer: str) -> None:
        """One of the links to a server is gone, with what was on its way: requests, answers."""
        for sent in (self.forwarded, self.passed_on):
            sent.interrupted(peer, self.view.now_ns)

    def answers_lost(self) -> None:
        """Something that another server said is lost: any answer, whoever was asked first."""
        self.forwarded.interrupted_all(self.view.now_ns)

    def _give_up(self, request: ApiRequest) -> None:
        self._answer_last(request, self._placing.unavailable(request))

    def _answer_last(self, request: ApiRequest, payload: bytes) -> None:
        """Whatever else comes is not for who asked."""
        self.answer(request, payload)
        self.forwarded.give_up(request)

    def retry(self) -> None:
        """Try requests again that wait for a leader or a repair; answer those that waited for a
        leader's end."""
        now_ns = self.view.now_ns
        for request in self.forwarded.late(now_ns):
            self._give_up(request)
        for sent in self.forwarded.unanswered(now_ns):
            self._undecided(sent)
        self.passed_on.late(now_ns)
        for sent in self.passed_on.unanswered(now_ns):
            self.give_back(sent.request, untouched=False)
        self._damaged.tick()
        self.step_downs.tick()
        if not self.held or now_ns < self._retry_due_ns:
            return
        self._retry_due_ns = now_ns + RETRY_NS
        held, self.held = self.held, []
        for one in held:
            self._route(one, waited=True)

    @property
    def expecting(self) -> bool:
        """Whether a request waits for something else than its entry, or for time to go by."""
        return any(
            (
                self.step_downs.waiting,
                self._damaged.waiting,
                self.archives.under_way,
                self.gathering.open,
                self.farewells.open,
            )
        )

    def next_due_ns(self) -> int | None:
        """When `retry` or a gathering has something to do."""
        due = [
            self.settling.next_due_ns(),
            self.step_downs.next_due_ns(),
            self.gathering.next_due_ns(),
            self.farewells.next_due_ns(),
            self._damaged.next_due_ns(),
            self.archives.next_due_ns(),
        ]
        if self.held:
            due.append(self._retry_due_ns)
        return min((at for at in due if at is not None), default=None)

    # Deciding, at the leader

    @property
    def busy(self) -> bool:
        """Whether the next turn has something to go on with."""
        return bool(self.confirming.waiting or self.serving.waiting) or self.gathering.busy

    def begin_turn(self) -> None:
        """What earlier turns had no room for."""
        self.gathering.go_on()
        self.serving.begin_turn()
        self.confirming.begin_turn()

    def _decide(self, held: HeldRequest, final: bool) -> None:
        """`final`: what waits for a repair does so no longer."""
        request = held.request
        resolved = self._placing.resolve(request)
        if resolved is None:
            return
        self.budget.left -= REQUEST_UNITS + search_units(self.view, request, resolved.call)
        decided: list[Decision] = []

        def decide() -> None:
            decided.append(api.answer(self.view, request, resolved))

        if self.line is None:
            decide()
        elif not self.line.run(0, decide):
            self._apologize(self.line, request, resolved.route)
            return
        if isinstance(decided[0], AwaitRepair):
            self._await_repair(held, decided[0], final)
        elif isinstance(decided[0], CheckStream | AuditStream | SignHead):
            self.answer(request, check_answers.answer_of(self.view, decided[0]))
        elif isinstance(decided[0], SendSnapshot | BeginRestore):
            self._await_others(held)
            self.archives.carry_out(request, decided[0])
        else:
            self._carry_out(held, decided[0])

    def _await_repair(self, held: HeldRequest, decision: AwaitRepair, final: bool) -> None:
        group = self.engine.groups.by_name.get(decision.group)
        replica = None if group is None or final else group.unit
        if isinstance(replica, StreamReplica):
            again = partial(self.confirming.take, held)
            self._damaged.wait(replica, decision.damage, again)
        else:
            self.answer(held.request, decision.refusal)

    def _apologize(self, line: LastLine, request: ApiRequest, route: "Route") -> None:
        """A handler met a bug: its asker hears that, and is let go if he is connected here."""
        error = api_error("JSStreamGeneralErrorF", err="internal server error")
        self.answer(request, api.refusal(route, error))
        if request.entry == self.view.me and request.client.conn:
            line.close_client(request.client.conn)

    def _carry_out(self, held: HeldRequest, decision: Decision) -> None:
        request = held.request
        match decision:
            case Reply():
                self.answer(request, decision.payload, decision.headers)
            case Replies():
                for one in decision.messages:
                    self.answer(request, one.payload, one.headers)
            case Silent():
                pass
            case ProposeMeta() | RemoveMetaPeer():
                self._propose_meta(held, decision)
            case Gather():
                self.gathering.begin(decision, held.asked_ns + GATHERED_NS)
            case MakeDirect():
                self._make_direct(held, decision)
            case _:
                self._act_in_group(held, decision)

    def _act_in_group(self, held: HeldRequest, decision: Decision) -> None:
        match decision:
            case ProposeGroup():
                self._propose_group(held, decision)
            case StepDown():
                self.step_downs.begin(held.request, decision)
            case Rescue():
                self.answer(held.request, rescuing.lower_quorum(self.engine, decision))

    def _propose_meta(
        self,
        held: HeldRequest,
        decision: ProposeMeta | RemoveMetaPeer,
    ) -> None:
        reply = decision.reply
        removed = decision.removed if isinstance(decision, ProposeMeta) else ()
        if removed and self.overtaken.is_too_soon(held, removed):
            self._hold_anew(held)
            return

        def applied(result: int | None) -> None:
            if result is not None and reply is not None:
                self.farewells.begin(held.request, reply, removed)

        if not decision.entries:
            applied(0)
            return
        self._await_others(held)
        if not self.engine.meta.propose(decision.entries, applied):
            self._hold_anew(held)

    def _await_others(self, held: HeldRequest) -> None:
        """An answer depends on other servers: who asked here is told when that takes long."""
        if held.request.entry == self.view.me:
            again, now_ns = held.hops > 0 or held.again, self.view.now_ns
            self.forwarded.sent(held.request, "", now_ns, held.asked_ns, again=again)

    def _propose_group(self, held: HeldRequest, decision: ProposeGroup) -> None:
        group = self.engine.groups.by_name.get(decision.group)

        def applied(result: int | None) -> None:
            reply = decision.reply
            if result is None or reply is None:
                return
            self.answer(held.request, reply if isinstance(reply, bytes) else reply(result))

        self._await_others(held)
        taken = group is not None and self.engine.groups.propose(group, decision.entries, applied)
        if not taken:
            self._hold_anew(held)

    def _make_direct(self, held: HeldRequest, decision: MakeDirect) -> None:
        replica = self.view.stream_replica(decision.account, decision.stream)
        if replica is None or replica.leading is None:
            self._hold_anew(held)
        elif replica.leading.direct.is_full:
            error = api_error("JSMaximumConsumersLimitErr")
            self.answer(held.request, api.refusal(api.ROUTES["consumer_create"], error))
        else:
            made = replica.leading.direct.add(decision.config)
            body = sourcing_consumers.created(self.view, made.consumer, made.leader)
            self.answer(held.request, body, decision.headers)

    # Answers

    def answer(self, request: ApiRequest, payload: bytes, headers: bytes = b"") -> None:
        """Send an answer to whoever asked: from here, if that is a client of a foreign server,
        because what came by one route does not go on by another."""
        if is_internal(request):
            self._tell_server(request, payload)
            return
        self.view.usage.count(request.account, error=b'"error":{' in payload[:300])
        self.audit(request, payload)
        self.budget.left -= len(payload) // ANSWER_BYTES
        if not request.reply:
            return
        account, reply, entry = request.account, request.reply, request.entry
        if entry == self.view.me:
            if self.forwarded.answered_here(account, reply):
                self.publisher.here(account, reply, headers, payload)
        elif request.is_foreign:
            self.publisher.here(account, reply, headers, payload)
            self.engine.outbox.parcel(entry).answered.append(Answered(account, reply))
        elif not self.publisher.at(account, entry, reply, headers, payload):
            told = ForwardReply(account, reply, headers, payload)
            self.engine.outbox.parcel(entry).replies.append(told)

    def _tell_server(self, request: ApiRequest, payload: bytes) -> None:
        """A server asked, for itself."""
        told = ForwardReply(request.account, request.reply, b"", payload)
        if request.entry == self.view.me:
            self.answered(told)
        else:
            self.engine.outbox.parcel(request.entry).replies.append(told)

    def answered(self, reply: ForwardReply) -> None:
        """Another server decided on a request that came in here."""
        is_open = self.forwarded.answered(reply.account, reply.reply)
        if not self.archives.told(reply.reply, reply.payload) and is_open and reply.reply:
            self.publisher.here(reply.account, reply.reply, reply.headers, reply.payload)
