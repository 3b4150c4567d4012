"""`auth account exports`: what an account lets others have."""

from dataclasses import replace

from jsctl.auth.claims import Export, Info
from jsctl.auth.entities import AccountEntity
from jsctl.commands.auth.reading import read_url
from jsctl.commands.auth.selecting import Auth
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import NotFound, UsageError
from jsctl.render.reports.auth.trade import EXPORT_COLUMNS, export_screen

STREAM, SERVICE = "stream", "service"
BUCKET_SERVICES = (
    "$JS.API.STREAM.INFO.KV_{bucket}",
    "$JS.API.DIRECT.GET.KV_{bucket}.$KV.{bucket}.>",
    "$JS.API.CONSUMER.CREATE.KV_{bucket}.>",
    "$KV.{bucket}.>",
)
BUCKET_STREAM = "_INBOX.KV_{bucket}.>"


def find(account: AccountEntity, subject: str) -> Export | None:
    """Streams before services, as they are looked up."""
    exports = sorted(account.claims.nats.exports, key=lambda one: one.type_ != STREAM)
    return next((one for one in exports if one.subject == subject), None)


def add(call: Call) -> None:
    """A subject that others may import."""
    auth = Auth(call)
    operator, account = auth.account()
    position = call.integer("token-position")
    if position < 0:
        raise UsageError("--token-position counts the tokens of the subject from 1")
    export = Export(
        name=call.text("name"),
        subject=call.text("subject"),
        type_=SERVICE if call.flag("service") else STREAM,
        account_token_position=position,
        advertise=call.flag("advertise"),
        info=Info(call.text("description"), read_url(call.text("url"))),
    )
    if not export.name or not export.subject:
        raise UsageError(f"{'name' if not export.name else 'subject'} cannot be empty")
    nats = account.claims.nats
    auth.issuer.change_account(operator, account, replace(nats, exports=(*nats.exports, export)))
    auth.store.save(operator)
    _show(call, export)


def _show(call: Call, export: Export) -> None:
    if call.as_json:
        call.output.json(export)
        return
    call.output.details(export_screen(export))
    call.output.print()


def info(call: Call) -> None:
    """One export."""
    _, account = Auth(call).account()
    subject = call.text("subject")
    if not subject:
        known = sorted(one.subject for one in account.claims.nats.exports)
        if not known:
            raise NotFound("no exports defined")
        subject = call.prompts.choose("Select an Export", known)
    export = find(account, subject)
    if export is None:
        raise NotFound("unknown export")
    _show(call, export)


def edit(call: Call) -> None:
    """Changes what is given."""
    auth = Auth(call)
    operator, account = auth.account()
    subject = call.text("subject")
    export = find(account, subject)
    if export is None:
        raise NotFound(f'export for subject "{subject}" not found')
    changed, words = export, export.info
    if call.given("url"):
        words = replace(words, info_url=read_url(call.text("url")))
    if call.given("description"):
        words = replace(words, description=call.text("description"))
    changed = replace(changed, info=words)
    if call.integer("token-position") > 0:
        changed = replace(changed, account_token_position=call.integer("token-position"))
    if call.switch("advertise") is not None:
        changed = replace(changed, advertise=call.flag("advertise"))
    nats = account.claims.nats
    exports = tuple(changed if one is export else one for one in nats.exports)
    auth.issuer.change_account(operator, account, replace(nats, exports=exports))
    auth.store.save(operator)
    _show(call, changed)


def ls(call: Call) -> None:
    """All exports, by subject."""
    _, account = Auth(call).account()
    exports = sorted(account.claims.nats.exports, key=lambda one: one.subject)
    if not exports and not call.output.machine:
        call.output.print("No Exports defined")
        return
    call.output.table(exports, EXPORT_COLUMNS, f"Exports for account {account.name}")
    if not call.output.machine:
        call.output.print()


def remove(call: Call) -> None:
    """Takes one away."""
    auth = Auth(call)
    operator, account = auth.account()
    subject = call.text("subject")
    export = find(account, subject)
    if export is None:
        raise NotFound(f'subject "{subject}" is not exported')
    if not call.confirm(f"Really remove the {subject} Export", prefix=""):
        return
    nats = account.claims.nats
    left = tuple(one for one in nats.exports if one is not export)
    auth.issuer.change_account(operator, account, replace(nats, exports=left))
    auth.store.save(operator)
    call.output.print(f'Removing {export.type_.title()} Export for subject "{subject}"')


def bucket(call: Call) -> None:
    """Everything that users of a bucket in another account need."""
    auth = Auth(call)
    operator, account = auth.account()
    name = call.text("bucket")
    added: list[Export] = []
    for pattern, kind in (*((one, SERVICE) for one in BUCKET_SERVICES), (BUCKET_STREAM, STREAM)):
        subject = pattern.format(bucket=name)
        call.output.print(f"Exporting {kind.title()} Subject: {subject}")
        words = Info(f"Export for KV Bucket {name}")
        added.append(Export(name=f"KV_{name}", subject=subject, type_=kind, info=words))
    nats = account.claims.nats
    auth.issuer.change_account(operator, account, replace(nats, exports=(*nats.exports, *added)))
    auth.store.save(operator)
