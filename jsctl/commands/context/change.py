"""`context add`, `copy`, `rm`, `select`, `unselect` and `previous`."""

import base64
from dataclasses import replace
from pathlib import Path

from jsctl.commands.context.show import show_context, store_of
from jsctl.commands.toolkit.assets.picking import near_names
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, NotFound, UsageError
from jsctl.settings import CONTEXT_KEYS, DEFAULT_URL, Context, check_context_name

_FILES = ("creds", "nkey", "cert", "key", "ca")


def add(call: Call) -> None:
    """Stores the connection flags over what the context, or `--context`, has already."""
    store = store_of(call)
    name = check_context_name(call.text("name"))
    base = Context()
    if store.exists(name):
        base = store.load(name)
    elif call.settings.given.get("context"):
        base = store.load(call.settings.given["context"])
    _save(call, name, base)


def copy(call: Call) -> None:
    """A new context from another one."""
    store = store_of(call)
    source, name = call.text("source"), check_context_name(call.text("name"))
    if not store.exists(source):
        raise NotFound(f'unknown context "{source}"')
    base = store.load(source)
    if store.exists(name):
        raise Conflict(f'context "{name}" already exist')
    _save(call, name, base)


def _save(call: Call, name: str, base: Context) -> None:
    given = call.settings.given
    changes: dict[str, object] = {
        key: given[key] for key in CONTEXT_KEYS if key in given and key != "tls_first"
    }
    if "tls_first" in given:
        changes["tls_first"] = given["tls_first"] not in ("", "false", "0")
    if changes.get("socks_proxy") in ("none", "-"):
        changes["socks_proxy"] = ""
    if call.given("description"):
        changes["description"] = call.text("description")
    if changes.get("token") and "user" not in changes:
        changes |= {"user": "", "password": ""}  # another login takes the place of the old one
    elif changes.get("user") and "token" not in changes:
        changes["token"] = ""
    context = replace(base, **changes)  # type: ignore[arg-type] # keys are field names
    if context.user and not context.password and not context.token:
        # A user alone is a token. Stored as one it is that for whoever reads the file.
        context = replace(context, user="", token=context.user)
    if not context.url:
        context = replace(context, url=DEFAULT_URL)
    if call.flag("embed"):
        context = _embedded(context)
    _check(context)
    store = store_of(call)
    store.save(name, context)
    if call.flag("select"):
        store.select(name)
    show_context(call, name, connect=call.flag("select"))


def _embedded(context: Context) -> Context:
    """Credential files by their contents. Raises UsageError for one that cannot be read."""
    contents: dict[str, str] = {}
    for key in ("creds", "nkey"):
        text = str(getattr(context, key))
        if text and "://" not in text and not text.startswith("data:"):
            try:
                data = Path(text).expanduser().read_bytes()
            except OSError as error:
                problem = str(error.strerror).lower()
                raise UsageError(f"open {text}: {problem}") from None
            contents[key] = "data:;base64," + base64.b64encode(data).decode()
    return replace(context, **contents)  # type: ignore[arg-type] # keys are text fields


def _check(context: Context) -> None:
    kinds = (context.user and context.password, context.creds, context.nkey, context.user_jwt)
    if sum(map(bool, kinds)) > 1:
        raise UsageError(
            "too many types of credentials. "
            "Choose only one from 'user/token', 'creds', 'nkey', 'nsc'"
        )


def remove(call: Call) -> None:
    """Deletes a context; the selected one only by force."""
    store = store_of(call)
    name = check_context_name(call.text("name"))
    selected = store.selected() == name
    if selected and not call.flag("force"):
        raise Conflict(
            "cannot remove the selected context, select another one or use the unselect command"
        )
    if not store.exists(name):
        if call.flag("force"):
            return
        raise NotFound(f'unknown context "{name}"')
    if not call.confirm(f'Really delete context "{name}"'):
        return
    store.remove(name)
    if selected:
        store.select("")


def select(call: Call) -> None:
    """Makes a context the default."""
    store = store_of(call)
    name = call.text("name")
    names = store.names()
    if not names:
        raise NotFound("no context defined")
    if not name:
        name = call.prompts.choose("Select a Context", names)
    if not store.exists(name):
        hints = (*near_names(name, names), _known(names))
        raise NotFound(f'context not found: "{name}"', hints=hints)
    store.select(name)
    show_context(call, name)


def unselect(call: Call) -> None:
    """No default any more."""
    store = store_of(call)
    name = store.selected()
    if not name:
        call.output.print("No context currently selected")
        return
    store.select("")
    call.output.print(f'Unselected the "{name}" context')


def previous(call: Call) -> None:
    """Back to the context selected before, like `cd -`."""
    store = store_of(call)
    name = store.previous()
    if name:
        store.select(name)
    name = name or store.selected()
    if not name:
        raise NotFound("no default context and no name supplied")
    show_context(call, name)


def _known(names: list[str]) -> str:
    return f"known: {', '.join(names)}"
