"""`auth account imports`: what an account takes from others."""

from dataclasses import replace

from jsctl.auth.claims import Import
from jsctl.auth.entities import AccountEntity, OperatorEntity
from jsctl.auth.keys import KeyKind, kind_of
from jsctl.commands.auth.selecting import Auth
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import NeedsConfirmation, NotFound, UsageError
from jsctl.render.reports.auth.trade import IMPORT_COLUMNS, ImportRow, import_screen

STREAM, SERVICE = "stream", "service"
BUCKET_SERVICES = (
    ("$JS.API.STREAM.INFO.KV_{bucket}", "STREAM.INFO.KV_{bucket}"),
    ("$JS.API.DIRECT.GET.KV_{bucket}.$KV.{bucket}.>", "DIRECT.GET.KV_{bucket}.$KV.{bucket}.>"),
    ("$JS.API.CONSUMER.CREATE.KV_{bucket}.>", "CONSUMER.CREATE.KV_{bucket}.>"),
    ("$KV.{bucket}.>", "$KV.{bucket}.>"),
)
BUCKET_STREAM = "_INBOX.KV_{bucket}.>"


def find(account: AccountEntity, local: str) -> Import | None:
    """By local subject; streams before services."""
    imports = sorted(account.claims.nats.imports, key=lambda one: one.type_ != STREAM)
    return next((one for one in imports if one.local_subject == local), None)


def add(call: Call) -> None:
    """A subject of another account."""
    auth = Auth(call)
    operator, account = auth.account()
    service, subject = call.flag("service"), call.text("subject")
    if call.flag("traceable") and service:
        raise UsageError("service imports cannot allow tracing")
    one = Import(
        name=call.text("name"),
        subject=subject,
        account=_source(call, operator),
        local_subject=call.text("local") or subject,
        type_=SERVICE if service else STREAM,
        share=call.flag("share"),
        allow_trace=call.flag("traceable"),
    )
    if not one.name or not one.subject:
        raise UsageError(
            f"could not add import: {'name' if not one.name else 'subject'} cannot be empty"
        )
    nats = account.claims.nats
    auth.issuer.change_account(operator, account, replace(nats, imports=(*nats.imports, one)))
    auth.store.save(operator)
    _show(call, operator, one)


def _source(call: Call, operator: OperatorEntity) -> str:
    """The account that is imported from, by name or key, or picked."""
    choice = call.text("source")
    found = operator.account(choice) if choice else None
    if found is not None:
        return found.subject
    if kind_of(choice) is KeyKind.ACCOUNT:
        return choice
    if choice:
        raise NotFound(f"could not select source account: unknown Account: {choice}")
    if not call.prompts.possible:
        raise NeedsConfirmation(
            "could not select source account: cannot pick an Account without a terminal",
            hints=("--source names it",),
        )
    named = {one.name: one.subject for one in sorted(operator.accounts, key=lambda one: one.name)}
    return named[call.prompts.choose("Select the Source account", list(named))]


def _show(call: Call, operator: OperatorEntity, one: Import) -> None:
    if call.as_json:
        call.output.json(one)
        return
    source = operator.account(one.account)
    shown = f"{source.name} ({source.subject})" if source else one.account
    call.output.details(import_screen(one, shown))
    call.output.print()


def info(call: Call) -> None:
    """One import."""
    operator, account = Auth(call).account()
    subject = call.text("subject")
    if not subject:
        known = sorted(one.local_subject for one in account.claims.nats.imports)
        if not known:
            raise NotFound("no imports defined")
        subject = call.prompts.choose("Select an Import", known)
    one = find(account, subject)
    if one is None:
        raise NotFound("unknown import")
    _show(call, operator, one)


def edit(call: Call) -> None:
    """Changes what is given."""
    auth = Auth(call)
    operator, account = auth.account()
    subject = call.text("subject")
    one = find(account, subject)
    if one is None:
        raise NotFound(f'import for local subject "{subject}" not found')
    if call.given("traceable") and one.type_ != STREAM:
        raise UsageError("service imports cannot allow tracing")
    changed = replace(
        one,
        allow_trace=one.allow_trace or call.flag("traceable"),
        share=one.share or call.flag("share"),
        local_subject=call.text("local") or one.local_subject,
    )
    nats = account.claims.nats
    imports = tuple(changed if other is one else other for other in nats.imports)
    auth.issuer.change_account(operator, account, replace(nats, imports=imports))
    auth.store.save(operator)
    _show(call, operator, changed)


def ls(call: Call) -> None:
    """All imports, by remote subject."""
    operator, account = Auth(call).account()
    imports = sorted(account.claims.nats.imports, key=lambda one: one.subject)
    if not imports and not call.output.machine:
        call.output.print("No Imports defined")
        return
    names = {one.subject: one.name for one in operator.accounts}
    rows = [ImportRow(one, names.get(one.account, one.account)) for one in imports]
    call.output.table(rows, IMPORT_COLUMNS, f"Imports for account {account.name}")
    if not call.output.machine:
        call.output.print()


def remove(call: Call) -> None:
    """Takes one away."""
    auth = Auth(call)
    operator, account = auth.account()
    subject = call.text("subject")
    one = find(account, subject)
    if one is None:
        raise NotFound(f'subject "{subject}" is not imported')
    if not call.confirm(f"Really remove the {one.local_subject} import", prefix=""):
        return
    nats = account.claims.nats
    left = tuple(other for other in nats.imports if other is not one)
    auth.issuer.change_account(operator, account, replace(nats, imports=left))
    auth.store.save(operator)
    word = "Subject" if one.type_ == STREAM else "subject"
    call.output.print(
        f'Removing {one.type_} Import for local {word} "{one.local_subject}" '
        f'imported from Account "{one.account}"'
    )


def bucket(call: Call) -> None:
    """Everything that is needed to use a bucket of another account."""
    auth = Auth(call)
    operator, account = auth.account()
    name, prefix = call.text("bucket"), call.text("prefix")
    source = _source(call, operator)
    added: list[Import] = []
    for remote, local in BUCKET_SERVICES:
        target = f"{prefix}.{local.format(bucket=name)}"
        call.output.print(f"Importing Service Subject: {target}")
        added.append(_part(name, source, remote.format(bucket=name), target, SERVICE))
    inbox = BUCKET_STREAM.format(bucket=name)
    call.output.print(f"Importing Stream Subject: {inbox}")
    added.append(_part(name, source, inbox, inbox, STREAM))
    nats = account.claims.nats
    auth.issuer.change_account(operator, account, replace(nats, imports=(*nats.imports, *added)))
    auth.store.save(operator)


def _part(name: str, source: str, subject: str, local: str, kind: str) -> Import:
    return Import(
        name=f"KV_{name}", subject=subject, account=source, local_subject=local, type_=kind
    )
