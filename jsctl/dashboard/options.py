"""What a dashboard is started with, and its part of the configuration file.

The file is `dashboard.json` beside the contexts:

    {"theme": "jsctl-light", "refresh": "2s", "read_only": false,
     "system_context": "sys", "keymap": {"purge": "ctrl+x", "step-down": "L"}}

The keymap's words are the ids of bindings, which the help page shows.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from jsctl.api.jsontext import of_people
from jsctl.api.times import SECOND_NS, parse_duration
from jsctl.dashboard.look.glyphs import UNICODE, Glyphs
from jsctl.dashboard.look.palette import DARK
from jsctl.dataclass import dataclass
from jsctl.errors import UsageError

FILE = "dashboard.json"
KEYS = ("theme", "refresh", "read_only", "system_context", "keymap")
REFRESH_MIN_NS = SECOND_NS // 5
REFRESH_MAX_NS = 60 * SECOND_NS


@dataclass(frozen=True, slots=True)
class DashboardOptions:
    """How it looks and what it may do; `refresh_s` is the time between two ticks."""

    read_only: bool = False
    refresh_s: float = 1.0
    theme: str = DARK.name
    glyphs: Glyphs = UNICODE
    keymap: Mapping[str, str] = field(default_factory=dict)
    system_context: str = ""
    web: bool = False
    """Runs behind a browser: no editor, no clipboard of this machine."""


def refresh_of(text: str, where: str) -> float:
    """Seconds of `500ms` or `2s`; a plain number is seconds. Raises UsageError."""
    try:
        found = parse_duration(f"{text}s" if text.replace(".", "", 1).isdigit() else text)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None
    if not REFRESH_MIN_NS <= found <= REFRESH_MAX_NS:
        raise UsageError(f"{where} must be between 200ms and 60s, got {text}")
    return found / SECOND_NS


def load_file(path: Path, options: DashboardOptions) -> DashboardOptions:
    """The options with a configuration file laid over them, if there is one.

    Raises UsageError that names the file and the key.
    """
    try:
        document = of_people(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return options
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None
    if not isinstance(document, dict):
        raise UsageError(f"{path} is not a JSON object")
    for key in document:
        if key not in KEYS:
            raise UsageError(f'{path}: unknown key "{key}"', hints=(f"known: {', '.join(KEYS)}",))
    keymap = document.get("keymap", {})
    texts = all(isinstance(one, str) for one in keymap.values()) if _is_map(keymap) else False
    if not texts:
        raise UsageError(f"{path}: keymap must map ids of bindings to keys")
    for key, kind in (("theme", str), ("system_context", str), ("read_only", bool)):
        if not isinstance(document.get(key, kind()), kind):
            raise UsageError(f"{path}: {key} must be a {kind.__name__}")
    refresh_s = options.refresh_s
    if "refresh" in document:
        refresh_s = refresh_of(str(document["refresh"]), f"{path}: refresh")
    return replace(
        options,
        theme=document.get("theme", options.theme),
        refresh_s=refresh_s,
        read_only=document.get("read_only", options.read_only),
        system_context=document.get("system_context", options.system_context),
        keymap=keymap,
    )


def _is_map(found: object) -> bool:
    return isinstance(found, dict)
