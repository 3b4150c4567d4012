"""`context ls`, `info` and `validate`."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, NotFound, UsageError
from jsctl.render.reports.contexts import CONTEXT_COLUMNS, ContextRow, context_screen
from jsctl.settings import DEFAULT_URL, FOREIGN_KEYS, Context, ContextStore, load

_SHADOWING = (
    *("NATS_URL", "NATS_USER", "NATS_PASSWORD", "NATS_CREDS", "NATS_NKEY", "NATS_CERT"),
    *("NATS_KEY", "NATS_CA", "NATS_TIMEOUT", "NATS_SOCKS_PROXY", "NATS_COLOR"),
)
_SCHEMES: Mapping[str, str] = {
    "op://": "1Password",
    "nsc://": "nsc",
    "env://": "runtime environment",
    "data:": "embedded",
}


def store_of(call: Call) -> ContextStore:
    """Where contexts are kept."""
    return ContextStore.default(call.environ)


def ls(call: Call) -> None:
    """All contexts, the selected one marked."""
    store = store_of(call)
    names = store.names()
    selected = store.selected()
    known = _loaded(call, names)
    as_document = call.flag("json") and call.output.form == "table"
    if call.flag("completion"):
        for name, context in known.items():
            mark = "*" if name == selected else ""
            call.output.print(f"{name.replace(':', chr(92) + ':')}{mark}:{context.description}")
        return
    if call.flag("names") and not as_document:
        call.output.names(known)
        return
    if as_document:
        call.output.json([document_of(name, context) for name, context in known.items()])
        return
    if not known and not call.output.machine:
        call.output.print("No known contexts")
        return
    rows = [ContextRow(name, one.description, name == selected) for name, one in known.items()]
    call.output.table(rows, CONTEXT_COLUMNS, "Known Contexts")
    if not call.output.machine:
        call.output.print()


def _loaded(call: Call, names: list[str]) -> dict[str, Context]:
    """What can be read; a broken file is told and does not hide the others."""
    store, known = store_of(call), dict[str, Context]()
    for name in names:
        try:
            known[name] = store.load(name)
        except (NotFound, UsageError) as error:
            if not call.flag("completion"):
                call.output.log(f"Could not load context {name}: {error}")
    return known


def document_of(name: str, context: Context) -> dict[str, object]:
    """A context as its file has it, with its name in front."""
    from dataclasses import fields

    known = {one.name: getattr(context, one.name) for one in fields(context)}
    extra = known.pop("extra")
    return {"name": name, **known, **FOREIGN_KEYS, **dict(extra)}


def info(call: Call) -> None:
    """One context, the selected one by default."""
    store = store_of(call)
    name = call.text("name") or call.settings.context_name or store.selected()
    if not name:
        raise NotFound("no default context and no name supplied")
    context = store.load(name)
    if call.as_json:
        call.output.json(document_of(name, context))
        return
    show_context(call, name, connect=call.flag("connect"))


def validate(call: Call) -> int:
    """One or all contexts; exit status 1 when one has a problem."""
    store = store_of(call)
    wanted = call.text("name")
    if wanted:
        store.load(wanted)
    sound = True
    for name in [wanted] if wanted else store.names():
        try:
            sound = show_context(call, name, connect=call.flag("connect")) and sound
        except UsageError as error:  # a file that cannot be read
            call.output.print(f"Could not load {name}: {error}\n")
            sound = False
        call.output.print()
    if not sound:
        raise JsctlError("validation failed")
    return 0


def show_context(call: Call, name: str, *, connect: bool = False) -> bool:
    """Prints a context's screen and a blank line; tells whether no problem was found."""
    store = store_of(call)
    context = store.load(name)
    rows = _rows(context, str(store.path(name)))
    sound = not any("(ERROR)" in value for _, value in rows)
    if connect:
        problem = _connect(name, call)
        rows.append(("Connection", problem or "OK"))
        sound = sound and not problem
    if call.output.asked and call.output.form in ("json", "jsonl", "yaml", "names"):
        found_rows = {label.lower().replace(" ", "_"): value for label, value in rows if value}
        call.output.json_line({"name": name, **found_rows, "sound": sound}, varied=True)
    else:
        call.output.details(context_screen(name, rows))
        call.output.print()
    found = [variable for variable in _SHADOWING if call.environ.get(variable)]
    if found:
        names = ", ".join(found)
        call.output.note(f"WARNING: Shell environment overrides in place using {names}")
    return sound


def _rows(context: Context, path: str) -> list[tuple[str, str]]:
    token_user = context.user if context.user and not context.password else ""
    return [
        ("Description", context.description),
        ("Server URLs", context.url or DEFAULT_URL),
        ("SOCKS5 Proxy", context.socks_proxy),
        ("Username", "" if token_user else context.user),
        ("Password", "*" * len(context.password)),
        ("Token", context.token or token_user),
        ("Credentials", _file(context.creds)),
        ("User JWT", context.user_jwt),
        ("User Seed", "*" * len(context.user_seed)),
        ("NKey", _file(context.nkey)),
        ("Certificate", _file(context.cert)),
        ("Key", _file(context.key)),
        ("CA", _file(context.ca)),
        ("TLS First", "true" if context.tls_first else ""),
        ("JS API Prefix", context.jetstream_api_prefix),
        ("JS Event Prefix", context.jetstream_event_prefix),
        ("JS Domain", context.jetstream_domain),
        ("Inbox Prefix", context.inbox_prefix),
        ("Path", path),
        ("Color Scheme", context.color_scheme),
    ]


def _file(text: str) -> str:
    """A credential with what it is or whether its file can be read."""
    if not text:
        return ""
    for scheme, word in _SCHEMES.items():
        if text.startswith(scheme):
            return "embedded data" if word == "embedded" else f"{text} ({word})"
    path = Path(text.removeprefix("file://")).expanduser()
    try:
        path.read_bytes()
    except OSError:
        return f"{text} (ERROR)"
    return f"{text} (OK)"


def _connect(name: str, call: Call) -> str:
    """Why a connection with this context fails; empty when it does not."""
    from jsctl.client.connection import connect

    settings = load({"context": name, "timeout": f"{call.settings.timeout_ns}ns"}, {**_home(call)})

    async def trial() -> None:
        async with connect(settings):
            pass

    try:
        asyncio.run(trial())
    except JsctlError as error:
        return str(error)
    return ""


def _home(call: Call) -> dict[str, str]:
    """Of the environment only where contexts are; its other settings must not get in."""
    found = call.environ.get("XDG_CONFIG_HOME")
    return {"XDG_CONFIG_HOME": found} if found else {}
