"""An account as a server knows it: its state, mappings, imports, exports, revoked users."""

from collections.abc import Iterable

from jsctl.api.monitoring.accountz import AccountDetailz
from jsctl.api.times import parse_time
from jsctl.render.details import Details
from jsctl.render.humanize import duration, go_moment, moment

LISTED_MAX = 20
WHOLE_WEIGHT = 100


def account_screen(detail: AccountDetailz, now_ns: int) -> Details:
    """The screen; `now_ns` is Unix time."""
    screen = Details(f"Account information for account {detail.account_name}")
    screen.section("Details")
    screen.row("Complete", detail.complete)
    screen.row("Expired", detail.expired)
    screen.row("System Account", detail.is_system)
    screen.row("Updated", f"{moment(detail.update_time)} ({_ago(detail.update_time, now_ns)} ago)")
    screen.row("JetStream", detail.jetstream_enabled)
    screen.row_if("Issuer", detail.issuer_key)
    screen.row_if("Tag", detail.name_tag)
    screen.row_if("Tags", ", ".join(detail.tags))
    _mappings(screen, detail)
    _all_imports(screen, "Imports", detail.imports)
    if detail.exports:
        screen.section("Exports")
        for one in detail.exports:
            _export(screen, _mapping(one))
    _all_imports(screen, "Responses", detail.responses.values())
    if detail.revoked_user:
        screen.section("Revoked Users")
        for user, when in detail.revoked_user.items():
            screen.row(user, f"{go_moment(when)} ({_ago(when, now_ns)} ago)")
    return screen


def _ago(text: str, now_ns: int) -> str:
    return duration(now_ns - parse_time(text))


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[object]:
    return value if isinstance(value, list | tuple) else []  # type: ignore[return-value]


def _mappings(screen: Details, detail: AccountDetailz) -> None:
    found = _mapping(detail.mappings)
    if not found:
        return
    screen.section("Mappings", parent=True)
    for subject, several in found.items():
        screen.lead(subject, indent=2)
        screen.indent(4)
        for one in map(_mapping, _items(several)):
            parts = [str(one.get("subject", ""))]
            if one.get("cluster"):
                parts.append(f"in cluster {one['cluster']}")
            if one.get("weight") != WHOLE_WEIGHT:
                parts.append(f"with weight {one.get('weight', 0)}")
            screen.row("Destination", ", ".join(parts))
        screen.indent(0)
        screen.text()


def _all_imports(screen: Details, title: str, found: Iterable[object]) -> None:
    several = [_mapping(one) for one in found]
    if several:
        screen.section(title)
        for one in sorted(several, key=lambda one: str(one.get("local_subject", ""))):
            _import(screen, one)  # servers tell them in any order


def _import(screen: Details, one: dict[str, object]) -> None:
    subject = str(one.get("subject") or "")
    local = str(one.get("local_subject") or "") or subject
    origin = "" if subject == local else subject
    if not local:
        return
    if one.get("invalid"):
        screen.row("Invalid", True)
    parts = [local]
    if origin:
        parts.append(f"from subject {origin}")
    if one.get("account"):
        parts.append(f"{'in' if origin else 'from'} account {one['account']}")
    screen.row("Subject", " ".join(parts))
    screen.row("Type", one.get("type", ""))
    screen.row_if("Name", one.get("name"))
    screen.row("Sharing", bool(one.get("share")))
    screen.row("Tracking", bool(one.get("tracking")))
    screen.text()


def _export(screen: Details, one: dict[str, object]) -> None:
    screen.row("Subject", one.get("subject", ""))
    screen.row("Type", one.get("type", ""))
    screen.row("Tokens Required", bool(one.get("token_req")))
    screen.row("Response Type", one.get("response_type", ""))
    threshold = one.get("response_threshold")
    if isinstance(threshold, int) and threshold > 0:
        screen.row("Response Threshold", duration(threshold))
    for label, key in (
        ("Description", "description"),
        ("Info URL", "info_url"),
        ("Name", "name"),
        ("Account Token Pos", "account_token_position"),
    ):
        screen.row_if(label, one.get(key))
    _listed(screen, "Accounts", _items(one.get("approved_accounts")))
    _listed(screen, "Revocations", list(_mapping(one.get("revoked_act"))))
    screen.text()


def _listed(screen: Details, label: str, names: list[object]) -> None:
    if not names:
        return
    many = len(names) > LISTED_MAX
    text = f"Rendering {LISTED_MAX}/{len(names)} use --json for the full list" if many else ""
    screen.row(label, text)
    screen.rows("", names[:LISTED_MAX])
