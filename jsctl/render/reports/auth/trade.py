"""Screens and tables of what accounts give each other, and of mappings of subjects."""

from collections.abc import Mapping, Sequence

from jsctl.auth.claims import Export, Import, WeightedMapping
from jsctl.dataclass import dataclass
from jsctl.render.column import Column
from jsctl.render.details import Details
from jsctl.render.humanize import boolean, moment_s, number

STREAM = "stream"


@dataclass(frozen=True, slots=True)
class ImportRow:
    """An import, and the name of the account that it is from."""

    nats: Import
    source: str


@dataclass(frozen=True, slots=True)
class MappingRow:
    """One target of a subject."""

    source: str
    target: WeightedMapping


EXPORT_COLUMNS: tuple[Column[Export], ...] = (
    Column("name", "Name", lambda row: row.name),
    Column("kind", "Kind", lambda row: row.type_.title()),
    Column("subject", "Subject", lambda row: row.subject),
    Column(
        "activation_required",
        "Activation Required",
        lambda row: row.token_req,
        text=lambda row: boolean(row.token_req),
    ),
    Column(
        "advertised",
        "Advertised",
        lambda row: row.advertise,
        text=lambda row: boolean(row.advertise),
    ),
    Column("token_position", "Token Position", lambda row: row.account_token_position),
    Column(
        "revocations",
        "Revocations",
        lambda row: len(row.revocations),
        text=lambda row: number(len(row.revocations)),
    ),
)

IMPORT_COLUMNS: tuple[Column[ImportRow], ...] = (
    Column("name", "Name", lambda row: row.nats.name),
    Column("kind", "Kind", lambda row: row.nats.type_.title()),
    Column("source", "Source", lambda row: row.source),
    Column("local", "Local Subject", lambda row: row.nats.local_subject or row.nats.subject),
    Column("remote", "Remote Subject", lambda row: row.nats.subject),
    Column(
        "allow_trace",
        "Allows Tracing",
        lambda row: row.nats.allow_trace,
        text=lambda row: boolean(row.nats.allow_trace) if row.nats.type_ == STREAM else "",
    ),
    Column(
        "share",
        "Sharing Connection Info",
        lambda row: row.nats.share,
        text=lambda row: boolean(row.nats.share),
    ),
)

MAPPING_COLUMNS: tuple[Column[MappingRow], ...] = (
    Column("source", "Source Subject", lambda row: row.source),
    Column("target", "Target Subject", lambda row: row.target.subject),
    Column("weight", "Weight", lambda row: row.target.weight),
    Column("cluster", "Cluster", lambda row: row.target.cluster),
)


def export_screen(export: Export) -> Details:
    """One export."""
    screen = Details(f"Export info for {export.name} exporting {export.subject}")
    screen.section("Configuration")
    screen.row("Name", export.name)
    screen.row_if("Description", export.info.description)
    screen.row("Kind", export.type_.title())
    screen.row_if("Info", export.info.info_url)
    screen.row("Subject", export.subject)
    screen.row("Activation Required", export.token_req)
    screen.row("Account Token Position", number(export.account_token_position))
    screen.row("Advertised", export.advertise)
    screen.section("Revocations")
    for public, at in sorted(export.revocations.items()):
        screen.row(moment_s(at), public)
    if not export.revocations:
        screen.text("No revocations found")
    return screen


def import_screen(one: Import, source: str) -> Details:
    """One import; `source` is the account that it is from, as it is to be shown."""
    screen = Details(f'Import info for import "{one.name}" importing "{one.local_subject}"')
    screen.section("Configuration")
    screen.row("Name", one.name)
    screen.row("From Account", source)
    screen.row("Local Subject", one.local_subject)
    screen.row("Kind", one.type_.title())
    screen.row("Remote Subject", one.subject)
    screen.row("Sharing Connection Info", one.share)
    if one.type_ == STREAM:
        screen.row("Allows Message Tracing", one.allow_trace)
    return screen


def mappings_screen(mappings: Mapping[str, Sequence[WeightedMapping]]) -> Details:
    """Where subjects go, one block for each target."""
    screen = Details("Subject mappings")
    screen.section("Configuration")
    for source, targets in mappings.items():
        for target in targets:
            screen.row("Source", source)
            screen.row("Target", target.subject)
            screen.row("Weight", number(target.weight))
            screen.row("Cluster", target.cluster)
            screen.row("", "")
        screen.row("Total weight", number(sum(target.weight for target in targets)))
        screen.row("", "")
    return screen
