"""Backups that can be shown to others: names become keyed hashes, bodies zeros of their length.

The same token and the same secret are the same hash wherever they stand, so filters still match
what they matched, in several backups too where they share a key file. Words are guessed easily,
so the hash is one with a secret; the key file has it, and what each hash stands for.
"""

import base64
import hmac
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.stream import StreamConfig
from jsctl.backups.archive import ConsumerEntry, MessageEntry
from jsctl.backups.filters import headers_of
from jsctl.errors import JsctlError, NotFound
from jsctl.files import read_bytes, write_new, write_whole

KEY_FILE_SUFFIX = ".keys.json"
VERSION = 1
SECRET_BYTES = 32
TOKEN_CHARS_MIN = 16
"""80 bits: two words do not meet in one hash."""
BUCKET_PREFIXES = ("KV_", "OBJ_")
_ROOTS = ("*", ">", "$KV", "$O")
_VERBATIM = frozenset(
    (
        "kv-operation",
        "nats-marker-reason",
        "nats-ttl",
        "nats-rollup",
        "nats-expected-last-subject-sequence",
        "nats-schedule",
        "nats-schedule-ttl",
        "nats-schedule-time-zone",
        "nats-incr",
    )
)
"""Headers that a server acts on; they name nobody."""
_SUBJECTS = frozenset(
    (
        "nats-expected-last-subject-sequence-subject",
        "nats-schedule-target",
        "nats-schedule-source",
    )
)
_TOLD = ("description", "metadata", "placement")
"""Left out of configurations: they are there to be read."""
_DEAD = "jsctl_dead"
"""In a consumer's state: what was given up."""
_CONFIG_KEYS = frozenset(one.name for one in fields(StreamConfig)) - {"extra"}
_CONSUMER_KEYS = frozenset(one.name for one in fields(ConsumerConfig)) - {"extra"}

Document = Mapping[str, object]


class Obfuscator:
    """The hashes of one secret, and what they stand for. `bodies` counts those replaced."""

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self.originals: dict[str, str] = {}
        self.bodies = 0
        self._hashes: dict[str, str] = {}

    @classmethod
    def fresh(cls) -> "Obfuscator":
        """With a secret of its own."""
        return cls(os.urandom(SECRET_BYTES))

    @classmethod
    def of_file(cls, path: Path) -> "Obfuscator":
        """From a key file, every hash of which is checked. Raises NotFound and JsctlError."""
        if not path.is_file():
            raise NotFound(f"open {path}: no such file or directory")
        try:
            document = jsontext.parse_object(read_bytes(path))
        except DecodeError as error:
            raise JsctlError(f"{path}: {error}") from None
        if document.get("version") != VERSION:
            version = document.get("version", 0)
            raise JsctlError(f"{path}: unsupported key file version {version}")
        made = cls(_secret(path, document.get("secret")))
        mapped = document.get("map")
        for hashed, original in (mapped if isinstance(mapped, dict) else {}).items():
            if not isinstance(original, str) or made._hash(original) != hashed:
                raise JsctlError(f'{path}: mapping for "{hashed}" does not match the secret')
            made._hashes[original], made.originals[hashed] = hashed, original
        return made

    def save(self, path: Path, given: Path | None) -> bool:
        """Writes the key file; says whether it is new. Raises Conflict for another one there."""
        document = {
            "version": VERSION,
            "secret": base64.b64encode(self.secret).decode(),
            "map": dict(sorted(self.originals.items())),
        }
        text = json.dumps(document, indent=2, ensure_ascii=False)
        if given is not None and given.absolute() == path.absolute():
            write_whole(path, text)
            return False
        write_new(path, text, what="key file")
        return True

    def reveal(self, value: str) -> str:
        """What a hash, a subject of hashes, or a bucket's stream stands for; others as they are."""
        return ".".join(map(self._revealed, value.split(".")))

    def _revealed(self, token: str) -> str:
        if token in self.originals:
            return self.originals[token]
        for prefix in BUCKET_PREFIXES:
            rest = token.removeprefix(prefix)
            if rest != token and rest in self.originals:
                return prefix + self.originals[rest]
        return token

    def _hash(self, token: str) -> str:
        """As long as the token, in the letters that every name may have."""
        data = token.encode()
        length = max(TOKEN_CHARS_MIN, len(data))
        need = (length * 5 + 7) // 8
        out = hmac.digest(self.secret, data, "sha256")
        block = 1
        while len(out) < need:
            more = out[-32:] + data + block.to_bytes(4, "big")
            out += hmac.digest(self.secret, more, "sha256")
            block += 1
        return base64.b32hexencode(out[:need]).decode().lower()[:length]

    def token(self, token: str) -> str:
        """A name, or a part of a subject. Raises JsctlError if two have one hash."""
        if not token:
            return token
        known = self._hashes.get(token)
        if known is not None:
            return known
        hashed = self._hash(token)
        other = self.originals.setdefault(hashed, token)
        if other != token:
            raise JsctlError(f'obfuscation hash collision between "{token}" and "{other}"')
        self._hashes[token] = hashed
        return hashed

    def subject(self, subject: str, *, functions: bool = False) -> str:
        """Token by token; with `functions` those of subject transforms stay."""
        if not subject:
            return subject
        return ".".join(
            one
            if one in _ROOTS or (functions and one.startswith("{{") and one.endswith("}}"))
            else self.token(one)
            for one in subject.split(".")
        )

    def destination(self, subject: str) -> str:
        """Where a transform leads."""
        return self.subject(subject, functions=True)

    def stream_name(self, name: str) -> str:
        """That of a bucket stays one of a bucket."""
        for prefix in BUCKET_PREFIXES:
            rest = name.removeprefix(prefix)
            if rest and rest != name:
                return prefix + self.token(rest)
        return self.token(name)

    def config(self, config: Document) -> dict[str, object]:
        """A stream's; limits stay, and what is not known is left out."""
        rewrite: dict[str, Callable[[object], object]] = {
            "name": _text(self.stream_name),
            "subjects": self._subjects,
            "mirror": self._source,
            "sources": lambda value: _each(value, self._source),
            "subject_transform": self._transform,
            "republish": self._transform,
        }
        return _rewritten(config, _CONFIG_KEYS, rewrite)

    def source_record(self, record: Document) -> dict[str, object]:
        """Where a recorded backup comes from."""
        rewrite = {"stream": _text(self.stream_name), "subjects": self._subjects}
        return _rewritten(record, frozenset(record), rewrite)

    def consumer(self, entry: ConsumerEntry) -> ConsumerEntry:
        """With another name and filters; how far it came stays."""
        document = jsontext.parse_object(entry.data)
        config = document.get("config")
        assert isinstance(config, dict), "the reader has seen to it"
        names = ("durable_name", "name", "deliver_group")
        rewrite: dict[str, Callable[[object], object]] = dict.fromkeys(names, _text(self.token))
        rewrite |= dict.fromkeys(("filter_subject", "deliver_subject"), _text(self.subject))
        rewrite["filter_subjects"] = self._subjects
        rewrite["priority_groups"] = lambda value: _each(value, _text(self.token))
        shown: dict[str, object] = {"config": _rewritten(config, _CONSUMER_KEYS, rewrite)}
        shown["state"] = _inside(
            document.get("state"), {_DEAD: lambda rows: _each(rows, self._death)}
        )
        data = json.dumps({**document, **shown}, separators=(",", ":"), ensure_ascii=False)
        return replace(entry, name=self.token(entry.name), data=data.encode())

    def _death(self, row: object) -> object:
        """Why a message is not delivered any more, with what a client said of it at the end."""
        return [*row[:-1], _text(self.token)(row[-1])] if isinstance(row, list) and row else row

    def message(self, message: MessageEntry, *, keep_body: bool) -> MessageEntry:
        """Subject, headers and body; a counter's body is what it counts, and is kept."""
        payload = message.payload
        if not keep_body:
            self.bodies += bool(payload)
            payload = b"0" * len(payload)
        return replace(
            message,
            subject=self.subject(message.subject),
            headers=self._headers(message.headers),
            payload=payload,
        )

    def _headers(self, block: bytes) -> bytes:
        found: dict[str, list[str]] = {}
        for name, value in headers_of(block):
            found.setdefault(name, []).append(self._header(name.lower(), value))
        lines = [f"{name}: {value}\r\n" for name in sorted(found) for value in found[name]]
        return "".join(("NATS/1.0\r\n", *lines, "\r\n")).encode() if lines else b""

    def _header(self, name: str, value: str) -> str:
        if name in _VERBATIM:
            return value
        return self.subject(value) if name in _SUBJECTS else self.token(value)

    def _subjects(self, value: object) -> object:
        return _each(value, _text(self.subject))

    def _transform(self, value: object) -> object:
        rewrite = {"src": _text(self.subject), "dest": _text(self.destination)}
        return _inside(value, rewrite)

    def _source(self, value: object) -> object:
        apart = dict.fromkeys(("api", "deliver"), _text(self.subject))
        own = {"name": _text(self.token), "deliver_subject": _text(self.subject)}
        rewrite: dict[str, Callable[[object], object]] = {
            "name": _text(self.stream_name),
            "filter_subject": _text(self.subject),
            "subject_transforms": lambda found: _each(found, self._transform),
            "external": lambda found: _inside(found, apart),
            "consumer": lambda found: _inside(found, own),
        }
        return _inside(value, rewrite)


def key_file_of(target: Path) -> Path:
    """Where the keys of a copy are written: beside it."""
    return target.with_name(target.name + KEY_FILE_SUFFIX)


def _secret(path: Path, text: object) -> bytes:
    try:
        secret = base64.b64decode(text if isinstance(text, str) else "", validate=True)
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise JsctlError(f"{path}: invalid secret")
    return secret


def _text(change: Callable[[str], str]) -> Callable[[object], object]:
    return lambda value: change(value) if isinstance(value, str) else value


def _each(value: object, change: Callable[[object], object]) -> object:
    return list(map(change, value)) if isinstance(value, list) else value


def _inside(value: object, rewrite: Mapping[str, Callable[[object], object]]) -> object:
    if not isinstance(value, Mapping):
        return value
    return {key: rewrite[key](part) if key in rewrite else part for key, part in value.items()}


def _rewritten(
    document: Document, known: frozenset[str], rewrite: Mapping[str, Callable[[object], object]]
) -> dict[str, object]:
    return {
        key: rewrite[key](value) if key in rewrite else value
        for key, value in document.items()
        if key in known and key not in _TOLD
    }
