"""`context edit`: a context as YAML with comments in the user's editor."""

import json
import shlex
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from jsctl.commands.context.show import show_context, store_of
from jsctl.commands.toolkit.content.yaml_problems import yaml_problem
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, NotFound, UsageError
from jsctl.settings import COLORS, CONTEXT_KEYS, Context

_SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Friendly description for this context shown when listing contexts", ("description",)),
    ("A comma separated list of NATS Servers to connect to", ("url",)),
    (
        "Connect using a specific username, requires password to be set",
        ("user", "password"),
    ),
    ("Connect using a NATS Credentials stored in a file", ("creds",)),
    ("Connect using a NKey with seed stored in a file", ("nkey",)),
    ("Connect using a JWT and its seed", ("user_jwt", "user_seed")),
    ("Configures a token to pass in the connection", ("token",)),
    ("Sets a x509 certificate to use, both cert and key should be set", ("cert", "key")),
    ("Sets an optional x509 trust chain to use", ("ca",)),
    ("Performs TLS Handshake before Server sends a greeting", ("tls_first",)),
    ("Use a custom inbox prefix, for example _INBOX.private.userid", ("inbox_prefix",)),
    (f"Sets a color scheme to use, one of {', '.join(COLORS)}", ("color_scheme",)),
    ("Connects to a specific JetStream domain", ("jetstream_domain",)),
    (
        "Subject used as a prefix when accessing the JetStream API",
        ("jetstream_api_prefix",),
    ),
    ("Subject prefix used to access JetStream events", ("jetstream_event_prefix",)),
    ("Use a Socks5 proxy like ssh to connect to the NATS server URLS", ("socks_proxy",)),
)


def edit(call: Call) -> None:
    """Opens the editor until it ends, then stores what was written."""
    store = store_of(call)
    name = call.text("name")
    if not store.exists(name):
        raise NotFound(f'unknown context "{name}"')
    context = store.load(name)
    editor = call.environ.get("EDITOR", "")
    if not editor:
        raise UsageError("set EDITOR environment variable to your chosen editor")
    with tempfile.TemporaryDirectory(prefix="jsctl-") as directory:
        path = Path(directory) / f"{name}.yaml"
        path.touch(mode=0o600)
        path.write_text(as_text(context), encoding="utf-8")
        try:
            ended = subprocess.run([*shlex.split(editor), str(path)], check=False)
        except OSError as error:
            raise JsctlError(f"could not run the editor: {error}") from None
        if ended.returncode:
            raise JsctlError(f"the editor ended with status {ended.returncode}")
        changed = from_text(path.read_text(encoding="utf-8"), context)
    store.save(name, changed)
    show_context(call, name)


def as_text(context: Context) -> str:
    """The YAML that is edited."""
    blocks: list[str] = []
    for comment, keys in _SECTIONS:
        lines = [f"# {comment}"]
        lines += [f"{key}: {json.dumps(getattr(context, key))}" for key in keys]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def from_text(text: str, context: Context) -> Context:
    """What was written, over the context. Raises UsageError."""
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise UsageError(f"the context is {yaml_problem(error)}") from None
    if node is None:
        return context
    if not isinstance(node, yaml.MappingNode):
        raise UsageError("the context is not a set of keys and values")
    unknown = sorted({str(key.value) for key, _ in node.value} - set(CONTEXT_KEYS))
    if unknown:
        raise UsageError(f"unknown keys in the context: {', '.join(unknown)}")
    changes: dict[str, object] = {}
    for key, value in node.value:
        if not isinstance(value, yaml.ScalarNode):
            raise UsageError(f"{key.value} is not a text")
        # As it is written: a password of digits, or of `yes`, is no number and no word.
        word = "" if value.tag.endswith(":null") else value.value
        changes[key.value] = _is_on(word) if key.value == "tls_first" else word
    return replace(context, **changes)  # type: ignore[arg-type] # keys are field names


_ON, _OFF = ("true", "yes", "on", "y"), ("false", "no", "off", "n", "")


def _is_on(word: str) -> bool:
    if word.lower() not in (*_ON, *_OFF):
        raise UsageError(f"tls_first must be true or false, not {word}")
    return word.lower() in _ON
