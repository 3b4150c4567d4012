"""`stream verify`: have servers prove that a stream is what it was, and compare it with a head that
was kept."""

import base64
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from jsctl.api.codec import dumps, loads
from jsctl.api.errors import ApiError
from jsctl.api.responses import ChainHead, StreamAudit
from jsctl.api.times import SECOND_NS
from jsctl.auth.keys import from_public
from jsctl.commands.stream.audit import waited
from jsctl.commands.toolkit.assets.picking import check_name
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError
from jsctl.render.reports.stream.audits import AUDIT_COLUMNS, audit_rows

if TYPE_CHECKING:
    from jsctl.client.manager import Manager


async def verify(call: Call) -> int:
    """Status 0 if all messages on all replicas fit into the chain, and that leads to the head that
    was kept; else 1."""
    name, kept = check_name(call.text("stream"), "stream"), call.text("head")
    keys = call.texts("key")
    async with call.manager() as manager:
        problem = ""
        if kept:
            problem = await _other_than(manager, name, _read(kept, name, keys))
        until = monotonic() + call.duration("deadline") / SECOND_NS

        async def ask(start: bool) -> StreamAudit | None:
            return await manager.verify_stream(name, start=start)

        found, least = None, (await manager.chain_head(name)).seq
        while found is None or found.last_seq < least:
            # Else somebody began it when the stream had not come as far.
            found = await waited(name, ask, until)
        now = await manager.chain_head(name)
    _check_signature(now, keys)
    if call.text("save"):
        Path(call.text("save")).write_bytes(dumps(now) + b"\n")
    proved = found.is_proved and not problem
    if call.as_json:
        document = {"proved": proved, "problem": problem, "head": now, "verify": found}
        call.output.json(document)
        return 0 if proved else 1
    call.output.table(audit_rows({name: found}), AUDIT_COLUMNS, "Stream Verification")
    call.output.say(f"Head: sequence {now.seq}, {now.hash}, {_signed(now)}")
    if now.since:
        call.output.say(f"Messages up to {now.since} were stored before there was a chain")
    if found.first_seq > now.since + 1:
        first = found.first_seq
        call.output.say(f"Messages before {first} are not proved: the chain has no hashes of them")
    if problem:
        call.output.say(problem)
    call.output.say(f"Stream {name} is {'proved' if proved else 'NOT proved'}")
    return 0 if proved else 1


def _signed(head: ChainHead) -> str:
    return f"signed by {head.key} at {head.time}" if head.signature else "not signed"


def _read(path: str, name: str, keys: tuple[str, ...]) -> ChainHead:
    """A head that was kept. Raises JsctlError for one that says nothing."""
    try:
        head = loads(ChainHead, Path(path).read_bytes())
    except ValueError as error:
        raise JsctlError(f"{path} is no head of a chain: {error}") from None
    if head.stream != name:
        raise JsctlError(f"{path} is a head of stream {head.stream}")
    _check_signature(head, keys)
    return head


def _check_signature(head: ChainHead, keys: tuple[str, ...]) -> None:
    """Raises JsctlError unless a head is signed as it should be."""
    if keys and head.key not in keys:
        raise JsctlError(f"the head of sequence {head.seq} is {_signed(head)}, by none of --key")
    if head.signature or keys:
        try:
            signature = base64.urlsafe_b64decode(head.signature + "=" * (-len(head.signature) % 4))
        except ValueError:
            raise JsctlError("the signature of the head is not base64") from None
        from_public(head.key).verify(head.text, signature)


async def _other_than(manager: "Manager", name: str, kept: ChainHead) -> str:
    """What the stream's chain has not in common with a head that was kept; empty: nothing."""
    told = f"the head of {kept.time}, sequence {kept.seq}"
    if not kept.seq:
        return ""
    try:
        now = await manager.chain_head(name, seq=kept.seq)
    except ApiError as error:
        return f"Cannot be compared with {told}: {error.description}"
    if (now.since, now.hash) == (kept.since, kept.hash):
        return ""
    return f"The chain is not that of {told}: a message up to there is not what it was"
