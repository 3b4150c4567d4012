"""Who asks: the header that a request gets when it crosses into another account.

The account and the round trip are told always; who exactly it is, and through which server, only
if the importing account shares that, or to the system account. What a client wrote into such a
header itself is replaced: services may trust it.
"""

import json
import re
from collections.abc import Sequence

from jsctl.api.codec import dumps
from jsctl.api.times import format_time
from jsctl.broker.interest.outbound import ClientFacts
from jsctl.broker.protocol import headers as header_block

Fields = dict[str, object]

_NAMED = re.compile(rb"nats-request-info", re.IGNORECASE).search
_OWN = re.compile(rb"[ \t]*nats-request-info[ \t]*:", re.IGNORECASE).match
_LINE_ENDS = re.compile(rb"\r\n|\r|\n")


def introduce(
    asker: ClientFacts | None,
    account: str,
    headers: bytes | None,
    *,
    shared: bool,
    system: bool,
    clusters: Sequence[str] = (),
) -> bytes:
    """The headers of a request that leaves the account where it was made.

    `asker` is None for what the broker itself sends; `system` requests go to the system account;
    `clusters` are the others, the nearest first.
    """
    if asker is None:
        return _with(headers, {"acc": account})
    fields: Fields = _details(asker) if shared else {"acc": account, "rtt": asker.rtt_ns}
    if shared or system:
        fields |= _place(asker, clusters)
    return _with(headers, fields)


def pass_on(
    asker: ClientFacts | None,
    account: str,
    headers: bytes,
    *,
    shared: bool,
    system: bool,
    clusters: Sequence[str] = (),
) -> bytes:
    """The headers of a request that crosses once more, from an account that offers the service
    of another one. `headers` are of `introduce`."""
    fields: Fields = json.loads(header_block.get(headers, header_block.REQUEST_INFO) or b"{}")
    fields["svc"] = account
    if asker is not None and (shared or system):
        fields |= _place(asker, clusters)
    return _with(headers, fields)


def _details(asker: ClientFacts) -> Fields:
    return {
        "start": format_time(asker.started_ns),
        "host": asker.host,
        "id": asker.client_id,
        "acc": asker.account,
        "user": asker.user,
        "name": asker.name,
        "lang": asker.lang,
        "ver": asker.version,
        "rtt": asker.rtt_ns,
        "jwt": asker.token,
        "issuer_key": asker.issuer,
        "name_tag": asker.name_tag,
        "tags": list(asker.tags),
        "kind": asker.kind,
        "client_type": "nats" if asker.kind == "Client" else "",
    }


def _place(asker: ClientFacts, clusters: Sequence[str]) -> Fields:
    return {"server": asker.server, "cluster": asker.cluster, "alts": list(clusters)}


def _with(headers: bytes | None, fields: Fields) -> bytes:
    told = {key: value for key, value in fields.items() if value}
    return header_block.append(_without_own(headers or b""), header_block.REQUEST_INFO, dumps(told))


def _without_own(block: bytes) -> bytes:
    """The block without any line that a library may take for this header: some let lines end with
    one character, and names be written otherwise."""
    sound = block.startswith(header_block.VERSION) and block.endswith(b"\r\n\r\n")
    if not block or (sound and _NAMED(block) is None):
        return block
    lines = [line for line in _LINE_ENDS.split(block) if line and not _OWN(line)]
    if not lines or not lines[0].startswith(header_block.VERSION):
        lines.insert(0, header_block.VERSION)
    return b"\r\n".join([*lines, b"", b""])
