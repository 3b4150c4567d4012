"""INFO and CONNECT between a leaf node and its hub: JSON <-> plain data.

Knows the format only; what a field means for a connection is decided elsewhere.
"""

from collections.abc import Mapping

from jsctl.broker.accounts.identity import Credentials
from jsctl.broker.accounts.leaf_guard import Subjects
from jsctl.broker.errors import ProtocolError
from jsctl.broker.leafnodes.types import LeafSettings
from jsctl.broker.linking.fields import SERVER_PROTO, TRACING_FROM, Fields, line
from jsctl.broker.login_options.permissions import SubjectPermission
from jsctl.dataclass import dataclass

SUBJECTS_MAX = 10_000
"""Subjects in one list of permissions: they are looked at for each message."""


@dataclass(frozen=True, slots=True)
class LeafInfo:
    """What the INFO of a hub says."""

    server_id: str
    server_name: str
    version: str
    cluster: str
    domain: str
    jetstream: bool
    nonce: str
    client_id: int
    leafnode_urls: tuple[str, ...] | None
    headers: bool
    traces: bool
    compression: str
    imports: Subjects | None
    exports: Subjects | None
    """What this server may subscribe there, and publish; None where nothing is said."""
    remote_account: str
    connect_info: bool
    """It answers CONNECT."""
    info_on_connect: bool
    """CONNECT will be answered by another INFO."""
    lame_duck: bool


@dataclass(frozen=True, slots=True)
class LeafConnect:
    """What the CONNECT of a leaf node says."""

    version: str
    server_id: str
    name: str
    cluster: str
    domain: str
    credentials: Credentials
    is_hub: bool
    jetstream: bool
    headers: bool
    deny_pub: tuple[bytes, ...]
    """What the leaf node does not want to hear."""
    isolate: bool
    compression: str
    account: str
    traces: bool
    lang: str
    gateway: str


def parse_info(body: bytes) -> LeafInfo:
    """Read an INFO. Raises ProtocolError when it is no JSON object of the right types."""
    fields = Fields(body, "INFO")
    told = fields.raw.get("leafnode_urls") is not None
    return LeafInfo(
        server_id=fields.text("server_id"),
        server_name=fields.text("server_name"),
        version=fields.text("version"),
        cluster=fields.text("cluster"),
        domain=fields.text("domain"),
        jetstream=fields.flag("jetstream"),
        nonce=fields.text("nonce"),
        client_id=fields.number("client_id"),
        leafnode_urls=fields.texts("leafnode_urls") if told else None,
        headers=fields.flag("headers"),
        traces=fields.number("proto") >= TRACING_FROM,
        compression=fields.text("compression"),
        imports=_subjects(fields, "import"),
        exports=_subjects(fields, "export"),
        remote_account=fields.text("remote_account"),
        connect_info=fields.flag("connect_info"),
        info_on_connect=fields.flag("info_on_connect"),
        lame_duck=fields.flag("ldm"),
    )


def _subjects(fields: Fields, key: str) -> Subjects | None:
    value = fields.raw.get(key)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ProtocolError(f"Parser Error: field '{key}' is no object")
    allow, deny = (_texts(value, name) for name in ("allow", "deny"))
    return Subjects.of(SubjectPermission(allow, deny or ()))


def _texts(fields: Mapping[str, object], key: str) -> tuple[str, ...] | None:
    value = fields.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ProtocolError(f"Parser Error: field '{key}' is no list of subjects")
    if len(value) > SUBJECTS_MAX:
        raise ProtocolError(f"Parser Error: field '{key}' has more than {SUBJECTS_MAX} subjects")
    return tuple(value)


def parse_connect(body: bytes) -> LeafConnect:
    """Read a CONNECT. Raises ProtocolError when it is no JSON object of the right types."""
    fields = Fields(body, "CONNECT")
    denied = Subjects.of(SubjectPermission((), _texts(fields.raw, "deny_pub") or ()))
    return LeafConnect(
        version=fields.text("version"),
        server_id=fields.text("server_id"),
        name=fields.text("name"),
        cluster=fields.text("cluster"),
        domain=fields.text("domain"),
        credentials=Credentials(
            user=fields.text("user"),
            password=fields.text("pass"),
            token=fields.text("auth_token"),
            nkey=fields.text("nkey"),
            signature=fields.text("sig"),
            jwt=fields.text("jwt"),
        ),
        is_hub=fields.flag("is_hub"),
        jetstream=fields.flag("jetstream"),
        headers=fields.flag("headers"),
        deny_pub=denied.deny,
        isolate=fields.flag("isolate"),
        compression=fields.text("compress_mode"),
        account=fields.text("remote_account"),
        traces=fields.number("protocol") >= TRACING_FROM,
        lang=fields.text("lang"),
        gateway=fields.text("gateway"),
    )


def info_line(
    settings: LeafSettings,
    urls: tuple[str, ...],
    *,
    leaf_id: int = 0,
    nonce: str = "",
    compression: str = "",
    account: str = "",
    is_system: bool = False,
    imports: SubjectPermission | None = None,
    exports: SubjectPermission | None = None,
) -> bytes:
    """This server's INFO for one leaf node. `account` is set in the answer to CONNECT; what the
    leaf node may subscribe and publish is told with it."""
    fields: dict[str, object] = {
        "server_id": settings.server_id,
        "server_name": settings.server_name,
        "version": settings.version,
        "proto": SERVER_PROTO,
        "go": "",
        "host": settings.host,
        "port": settings.port,
        "headers": settings.headers,
        "auth_required": True,
        "max_payload": settings.max_payload,
        "info_on_connect": True,
        "api_lvl": settings.api_level,
        "jsctl": True,
    }
    optional: dict[str, object] = {
        "tls_required": settings.tls_required,
        "tls_verify": settings.tls_verify,
        "jetstream": settings.jetstream,
        "ip": settings.address,
        "client_id": leaf_id,
        "nonce": nonce,
        "cluster": settings.cluster,
        "domain": settings.domain,
        "compression": compression,
        "leafnode_urls": list(urls),
        "connect_info": bool(account),
        "remote_account": account,
        "acc_is_sys": is_system,
        "import": _rule(imports),
        "export": _rule(exports),
    }
    fields.update((key, value) for key, value in optional.items() if value)
    return line("INFO", fields)


def _rule(rule: SubjectPermission | None) -> dict[str, list[str]] | None:
    if rule is None:
        return None
    found = {"allow": list(rule.allow or ()), "deny": list(rule.deny)}
    return {key: value for key, value in found.items() if value}


def connect_line(
    settings: LeafSettings,
    given: Mapping[str, object],
    *,
    account: str,
    deny_pub: tuple[str, ...],
    is_hub: bool,
    isolate: bool,
    jetstream: bool,
    compression: str,
) -> bytes:
    """This server's CONNECT as the dialing side; `given` is what it logs in with."""
    fields: dict[str, object] = {"version": settings.version}
    fields.update((key, value) for key, value in given.items() if value)
    fields.update(
        {
            "server_id": settings.server_id,
            "name": settings.server_name,
            "cluster": settings.cluster,
            "headers": settings.headers,
            "compress_mode": compression,
            "remote_account": account,
            "protocol": SERVER_PROTO,
        }
    )
    optional: dict[str, object] = {
        "domain": settings.domain,
        "is_hub": is_hub,
        "jetstream": jetstream,
        "deny_pub": list(deny_pub),
        "isolate": isolate,
    }
    fields.update((key, value) for key, value in optional.items() if value)
    return line("CONNECT", fields)
