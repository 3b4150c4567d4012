"""Raft in plain text, for transcripts and logs: one line for each thing."""

from collections.abc import Iterable

from jsctl.broker.raft.codec import decode_members
from jsctl.broker.raft.ready import Ready
from jsctl.broker.raft.state import RaftState
from jsctl.broker.raft.types import (
    Append,
    AppendReply,
    Entry,
    EntryKind,
    Heartbeat,
    HeartbeatReply,
    Members,
    Message,
    Role,
    Standing,
    StandingKind,
    TimeoutNow,
    VoteReply,
    VoteRequest,
)


def describe_members(members: Members) -> str:
    """`a,b,c+d`: voters, and learners behind the plus."""
    text = ",".join(members.voters) or "-"
    return text + ("+" + ",".join(members.learners) if members.learners else "")


def describe_entry(entry: Entry) -> str:
    """`3/7 "data"`: term, index, content."""
    where = f"{entry.term}/{entry.index}"
    if entry.kind == EntryKind.EMPTY:
        return f"{where} {entry.data.decode() or 'empty'}"
    if entry.kind == EntryKind.CONFIG:
        return f"{where} members {describe_members(decode_members(entry.data))}"
    data = entry.data if len(entry.data) <= 24 else entry.data[:21] + b"..."
    return f'{where} "{data.decode(errors="backslashreplace")}"'


def describe_entries(entries: Iterable[Entry]) -> str:
    """Entries in brackets."""
    return "[" + ", ".join(map(describe_entry, entries)) + "]"


def describe_standing(standing: Standing) -> str:
    """`whole`, `suspect(2,17)`, `unknown`."""
    name = standing.kind.name.lower()
    if standing.kind == StandingKind.SUSPECT:
        return f"{name}({standing.term},{standing.index})"
    return name


def describe_message(m: Message) -> str:
    """`a>b append term=2 ...`."""
    return f"{m.sender}>{m.to} {_body(m)}"


def _body(m: Message) -> str:
    if isinstance(m, VoteRequest):
        flags = [name for name in ("transfer", "poll", "fresh") if getattr(m, name)]
        kind = "pre-vote?" if m.pre else "vote?"
        return _line(f"{kind} term={m.term} log={m.last_term}/{m.last_index}", flags)
    if isinstance(m, VoteReply):
        kind = "pre-vote" if m.pre else "vote"
        answer = "yes" if m.granted else "no"
        flags = ["empty"] if m.empty else []
        return _line(f"{kind} {answer} term={m.term} own={m.voter_term}", flags)
    if isinstance(m, Append):
        text = f"append term={m.term} prev={m.prev_term}/{m.prev_index} commit={m.commit}"
        return text + (f" {describe_entries(m.entries)}" if m.entries else "")
    if isinstance(m, AppendReply):
        if m.rejected:
            text = f"reject term={m.term} at={m.index} hint={m.hint_term}/{m.hint_index}"
        else:
            text = f"ack term={m.term} index={m.index}"
        return _line(text, _flags(m.standing))
    if isinstance(m, Heartbeat):
        text = f"heartbeat term={m.term} commit={m.commit} round={m.round}"
        return _line(text, ["quiet"] if m.quiet else [])
    return _short_body(m)


def _short_body(m: HeartbeatReply | TimeoutNow) -> str:
    if isinstance(m, TimeoutNow):
        return f"timeout-now term={m.term}"
    text = f"alive term={m.term} match={m.match} round={m.round}"
    return _line(text, (["quiet"] if m.quiet else []) + _flags(m.standing))


def _flags(standing: StandingKind) -> list[str]:
    return [] if standing == StandingKind.WHOLE else [standing.name.lower()]


def _line(text: str, flags: list[str]) -> str:
    return " ".join([text, *flags])


def describe_ready(ready: Ready) -> list[str]:
    """What is to be written and told; messages are left to `describe_message`."""
    lines: list[str] = []
    if ready.role_change is not None:
        change = ready.role_change
        lines.append(f"{change.role.value} term={change.term} leader={change.leader or '-'}")
    if ready.standing is not None:
        lines.append(f"standing {describe_standing(ready.standing)}")
    if ready.members is not None:
        lines.append(f"members {describe_members(ready.members)}")
    if ready.truncate_from is not None:
        lines.append(f"truncate from {ready.truncate_from}")
    if ready.base is not None:
        lines.append(f"base {ready.base.term}/{ready.base.index}")
    if ready.append:
        lines.append(f"write {describe_entries(ready.append)}")
    if ready.hard_state is not None:
        lines.append(f"write term={ready.hard_state[0]} vote={ready.hard_state[1] or '-'}")
    if ready.serving:
        lines.append("serving")
    if ready.committed:
        lines.append(f"apply {describe_entries(ready.committed)}")
    lines += [f"read {token} at {index}" for token, index in ready.reads]
    lines += [f"read {token} failed" for token in ready.reads_failed]
    lines += [f"{peer} needs the state" for peer in ready.needs_snapshot]
    return lines


def describe_state(state: RaftState) -> str:
    """One line about a node: role, term, vote, log, members."""
    log = state.log
    parts = [
        f"{state.me} {state.role.value} term={state.term} vote={state.vote or '-'}",
        f"leader={state.leader or '-'} log={log.base_index}..{log.last_index}",
        f"durable={log.stable} commit={log.commit}",
        f"members={describe_members(state.members)}",
    ]
    if state.standing.kind != StandingKind.WHOLE:
        parts.append(describe_standing(state.standing))
    if state.quiet:
        parts.append("quiet")
    if state.role is Role.LEADER:
        parts += [
            f"{peer}:{p.flow.value}:{p.match}/{p.next}" for peer, p in sorted(state.peers.items())
        ]
    return " ".join(parts)
