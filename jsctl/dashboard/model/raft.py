"""Raft groups put together from what their members say."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol

from jsctl.api.times import parse_duration
from jsctl.dashboard.model.documents import Document, flag, integer, section, text
from jsctl.dashboard.model.snapshot import Level, Member, RaftGroup
from jsctl.dashboard.model.tracks import time_of

BEHIND_ENTRIES = 1000
"""Entries that a member may lack before it is marked."""
META = "_meta_"


class Teller(Protocol):
    """A server's reply to RAFTZ."""

    @property
    def name(self) -> str:
        """Which server."""

    @property
    def data(self) -> Document:
        """Account -> group -> state."""


def groups_of(
    told: Iterable[Teller], assets: Mapping[str, str], down: AbstractSet[str]
) -> tuple[RaftGroup, ...]:
    """All groups, worst first; `assets` names the stream or consumer of a group."""
    found: dict[tuple[str, str], list[tuple[str, Document]]] = {}
    for one in told:
        for account, groups in one.data.items():
            if not isinstance(groups, dict):
                continue
            for name, group in groups.items():
                if isinstance(group, dict):
                    found.setdefault((account, name), []).append((one.name, group))
    made = [
        _group(account, name, members, assets.get(name, ""), down)
        for (account, name), members in found.items()
    ]
    return tuple(sorted(made, key=lambda one: (-one.level, one.name != META, one.asset, one.name)))


def _group(
    account: str,
    name: str,
    told: list[tuple[str, Document]],
    asset: str,
    down: AbstractSet[str],
) -> RaftGroup:
    leading = [(server, doc) for server, doc in told if text(doc, "state") == "LEADER"]
    best = max(leading or told, key=lambda pair: integer(pair[1], "term"))
    leader, document = best[0] if leading else "", best[1]
    members = {server: _member(server, doc) for server, doc in told}
    committed = max(integer(doc, "committed") for _, doc in told)
    for peer in section(document, "peers").values():
        if isinstance(peer, dict):
            _add_peer(members, peer, down)
    if not asset:
        asset = "meta group" if name == META else ""
    level, why = _judge(leader, members.values(), committed, down, integer(document, "size"))
    return RaftGroup(
        account=account,
        name=name,
        asset=asset,
        leader=leader,
        leader_since_ns=time_of(text(document, "leader_since")),
        term=integer(document, "term"),
        size=integer(document, "size"),
        need=integer(document, "quorum_needed"),
        committed=committed,
        members=tuple(sorted(members.values(), key=lambda one: one.server)),
        level=level,
        why=why,
    )


def _member(server: str, document: Document) -> Member:
    wal = section(document, "wal")
    return Member(
        server=server,
        state=text(document, "state").lower(),
        term=integer(document, "term"),
        committed=integer(document, "committed"),
        applied=integer(document, "applied"),
        last_index=integer(document, "pindex"),
        log_entries=integer(wal, "messages"),
        log_bytes=integer(wal, "bytes"),
        snapshot_index=max(0, integer(wal, "first_seq") - 1),
        seen_ns=0,
        catching_up=flag(document, "catching_up"),
        error=text(document, "wal_error"),
    )


def _add_peer(members: dict[str, Member], peer: Document, down: AbstractSet[str]) -> None:
    """What the leader knows of a member that may not have told itself."""
    name = text(peer, "name")
    try:
        seen_ns = parse_duration(text(peer, "last_seen"))
    except ValueError:
        seen_ns = -1
    index = integer(peer, "last_replicated_index")
    if name not in members:
        state = "offline" if name in down else "silent"
        members[name] = Member(name, state, committed=index, applied=index, seen_ns=seen_ns)


def _judge(
    leader: str,
    members: Iterable[Member],
    committed: int,
    down: AbstractSet[str],
    size: int,
) -> tuple[Level, str]:
    away = sorted(one.server for one in members if one.state in ("offline", "silent"))
    away = [name for name in away if name in down] or away
    if not leader and size > 0:
        return Level.BAD, "no leader"
    if away:
        return Level.WARN, f"{', '.join(away)} away"
    for one in members:
        if one.error:
            return Level.BAD, f"{one.server}: {one.error}"
        if one.catching_up or committed - one.applied > BEHIND_ENTRIES:
            return Level.WARN, f"{one.server} catches up"
    return Level.OK, ""
