"""`account tls`: the certificates of the server that one is connected to."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from jsctl.api.times import format_duration
from jsctl.auth.certificates import Certificate, read_certificate
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, JsctlError

if TYPE_CHECKING:
    from jsctl.client.library import NatsClient

MICROSECOND_NS = 1000


async def tls(call: Call) -> None:
    """Shows the verified chain. Raises Conflict for what expired or soon will."""
    async with call.client() as client:
        chain = [read_certificate(der) for der in _verified_chain(client)]
    warn_ns = call.duration("expire-warn")
    if call.as_json:
        call.output.json([_document(one) for one in chain])
    else:
        if call.flag("ocsp"):
            call.output.print("# No OCSP Response found in TLS connection\n")
        call.output.print(f"# TLS Verified Chains count: {1 if chain else 0}")
    if not chain:
        raise JsctlError("no verified chains found in TLS")
    problems = _shown(call, chain, warn_ns)
    if problems:
        raise Conflict(problems[0])


def _verified_chain(client: "NatsClient") -> list[bytes]:
    writer = getattr(client._transport, "_io_writer", None)
    made = writer.get_extra_info("ssl_object") if writer is not None else None
    if made is None:
        raise JsctlError("nats: connection is not tls")
    if hasattr(made, "get_verified_chain"):  # public from Python 3.13 on
        return list(made.get_verified_chain())
    from _ssl import ENCODING_DER

    return [bytes(one.public_bytes(ENCODING_DER)) for one in made._sslobj.get_verified_chain()]


def _shown(call: Call, chain: Sequence[Certificate], warn_ns: int) -> list[str]:
    """Prints each certificate; the sentences about those that expire."""
    now = datetime.now(UTC)
    soon = now + timedelta(microseconds=warn_ns // MICROSECOND_NS)
    problems: list[str] = []
    lines = ["\n# chain: 1"]
    for at, one in enumerate(chain, 1):
        authority = "true" if one.authority else "false"
        lines.append(f'# chain=1 cert={at} isCA={authority} Subject="{one.subject}"')
        expires = one.expires.strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
        where = f'chain=1 cert={at} expiration="{expires}" subject="{one.subject}"'
        if one.expires < now:
            lines.append(f"# EXPIRED after {expires}")
            problems.append(f"expired cert {where}")
        elif warn_ns > 0 and one.expires < soon:
            lines.append(f"# EXPIRING SOON: within {format_duration(warn_ns)} of {expires}")
            problems.append(f"cert expiring soon {where}")
        lines.append(f"#   Expiration: {expires}")
        for label, names in (
            ("DNS Names", one.dns),
            ("IP Addresses", one.addresses),
            ("URIs", one.uris),
            ("Email Addresses", one.emails),
        ):
            if names:
                lines.append(f"#   SAN: {label}: [{' '.join(names)}]")
        lines += [f"#   Serial: {one.serial}", f"#   Signed-with: {one.signed_with}"]
        if call.flag("pem"):
            lines.append(one.pem.rstrip("\n"))
    if not call.as_json:
        call.output.print("\n".join(lines))
    return problems


def _document(one: Certificate) -> dict[str, object]:
    return {
        "subject": one.subject,
        "serial": str(one.serial),
        "expires": one.expires.isoformat().replace("+00:00", "Z"),
        "is_ca": one.authority,
        "signed_with": one.signed_with,
        "dns_names": list(one.dns),
        "ip_addresses": list(one.addresses),
        "uris": list(one.uris),
        "email_addresses": list(one.emails),
        "pem": one.pem,
    }
