"""What the blocks of listeners that this server does not have are made of: see `absent_servers` and
`absent_clients`.

They are taken with a warning, so that one file serves both servers; but what is in them is read as
nats-server reads it, and what that refuses is refused here. An operator who mistypes what is to
keep others out hears of it, whoever serves the file in the end. Files of certificates are not
opened.
"""

import re
from urllib.parse import urlsplit

from jsctl.broker.conf.blocks import (
    CERTIFICATE,
    CURVES,
    TLS,
    complete_pair,
)
from jsctl.broker.conf.fields import (
    Field,
    Reader,
    Reading,
    Section,
    array,
    boolean,
    duration,
    integer,
    listen,
    one_of,
    port,
    quiet,
    rejected,
    text,
    texts,
)
from jsctl.broker.conf.tree import ConfigNode
from jsctl.broker.conf.users import secret

Found = dict[str, object]
SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")


def not_negative(node: ConfigNode, reading: Reading) -> int:
    """A duration that is no less than nothing."""
    value = duration(node, reading)
    if value < 0:
        raise node.error("must be a positive value", 'write for example "10s"')
    return value


def remote_url(node: ConfigNode, reading: Reading) -> str:
    """Where another server is."""
    value = text(node, reading).strip()
    try:
        host = urlsplit(value).netloc
        urlsplit(value).port  # noqa: B018 (raises for what is none)
    except ValueError:
        host = " "
    plain = ":" in value.partition("/")[0] and not SCHEME.match(value)
    if plain or any(char.isspace() or not char.isprintable() for char in host):
        raise node.error("error parsing url", "write for example nats://host:7422")
    return value


def curve_names(node: ConfigNode, reading: Reading) -> tuple[str, ...]:
    """All that nats-server knows."""
    found = texts(node, reading)
    if not found:
        raise node.error("'curve_preferences' cannot be empty", "remove it")
    for name in found:
        if name.upper() not in CURVES:
            raise node.error(f"unrecognized curve preference {name}", f"use {', '.join(CURVES)}")
    return found


def certificates(node: ConfigNode, reading: Reading) -> None:
    """An array of `{cert_file, key_file}`."""
    for item in array(node):
        CERTIFICATE.read(item, reading, "certs")


def windows_alone(node: ConfigNode, _: Reading) -> None:
    """A store of certificates that only Windows has."""
    raise node.error("cert_store not compatible with current operating system", "use cert_file")


def tls_of(*, known_urls: bool) -> Reader:
    """A reader of a `tls` block: what this server could not carry out matters to nobody here."""
    names = quiet("ocsp_peer", "cert_match_by", "cert_match", "ca_certs_match")
    others: tuple[Field, ...] = (
        names,
        quiet("cert_match_skip_invalid"),
        Field(("verify_and_map",), "", boolean),
        Field(("verify_cert_and_check_known_urls",), "", boolean),
        Field(("connection_rate_limit",), "", integer),
        Field(("cert_store",), "", windows_alone),
        Field(("certs", "certificates"), "", certificates),
        Field(("curve_preferences",), "", curve_names),
    )
    if not known_urls:
        only_dialed = rejected(
            "verify_cert_and_check_known_urls",
            why="not supported in this context",
            remedy="remove it",
        )
        others = (*others, only_dialed)
    section = Section(*dict.fromkeys(TLS.by_name.values()), *others, once=True)

    def read(node: ConfigNode, reading: Reading) -> bool:
        found = section.read(node, reading, "tls")
        complete_pair(node, str(found.get("cert_file", "")), str(found.get("key_file", "")))
        return True

    return read


def listens(found: Found) -> bool:
    """Whether there is a port; 0 is none."""
    address = found.get("listen")
    return bool(address[1] if isinstance(address, tuple) else found.get("port"))


ADDRESS = (
    Field(("listen",), "listen", listen),
    Field(("port",), "port", port),
    Field(("host", "net"), "", text),
)
WRITES = (
    Field(("write_deadline",), "", duration),
    Field(("write_timeout",), "", one_of("default", "close", "retry")),
)
CREDENTIALS = (
    Field(("user", "username"), "user", text),
    Field(("password", "pass"), "", secret),
)
DIALING_TLS = tls_of(known_urls=True)
LISTENING_TLS = tls_of(known_urls=False)
