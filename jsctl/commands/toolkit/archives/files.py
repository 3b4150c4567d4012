"""Archives of audits: ZIP files of JSON documents, each with tags that a manifest lists.

`nats audit` reads what is written here and the other way round.
"""

import json
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TypeAlias

from jsctl.api.jsontext import parse_object
from jsctl.api.strict import DecodeError
from jsctl.errors import JsctlError, UsageError
from jsctl.files import SECRET_MODE, draft_of, file_at

Document: TypeAlias = dict[str, object]
ROOT = "capture"
MANIFEST = f"{ROOT}/misc/manifest.json"
METADATA = "audit_gather_metadata"
LOG = "audit_gather_log"
UNCLUSTERED = "unclustered"
DOCUMENT_BYTES_MAX = 256 * 1024 * 1024
"""One answer of a server is at most 64 MiB; an archive that says more is not ours."""
NAME_LETTERS_MAX = 1024
"""In a name: a path in an archive has 65,535 bytes at most."""
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError)
"""RuntimeError is of what is encrypted, or packed in a way that is not known here."""


class BadName(ValueError):
    """A name that cannot be a part of a path."""


def path_of(tags: Mapping[str, str], page: int, extension: str = "json") -> str:
    """Where a document is kept. Raises BadName."""
    for label, value in tags.items():
        if value in ("", ".", "..") or set(value) & set("/\\\0"):
            raise BadName(f'tag "{label}" value "{value}" is not a valid path component')
        if len(value) > NAME_LETTERS_MAX:
            raise BadName(f'tag "{label}" has more than {NAME_LETTERS_MAX} letters')
    if special := tags.get("special"):
        return f"{ROOT}/misc/{special}.{extension}"
    cluster, server, kind = tags["cluster"], tags["server"], tags["artifact_type"]
    if profile := tags.get("profile_name"):
        return f"{ROOT}/profiles/{cluster}/{server}__{profile}.{extension}"
    name = f"{kind}/{page:04d}.{extension}"
    if "account" not in tags:
        return f"{ROOT}/clusters/{cluster}/{server}/{name}"
    account = f"{ROOT}/accounts/{tags['account']}"
    if "stream" in tags:
        return f"{account}/streams/{tags['stream']}/replicas/{cluster}__{server}/{name}"
    return f"{account}/servers/{cluster}__{server}/{name}"


class Writer:
    """Writes beside the target; `finish` gives the archive its name, `discard` leaves nothing."""

    def __init__(self, target: Path) -> None:
        """Raises JsctlError when nothing can be written there."""
        self.target = target
        self._place = file_at(target)
        self._draft = None if self._place is None else draft_of(self._place)
        self._manifest: dict[str, list[dict[str, str]]] = {}
        self._pages: dict[str, int] = {}
        try:
            handle = os.open(
                self._draft or target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, SECRET_MODE
            )
        except OSError as error:
            raise JsctlError(f"failed to create archive: {target}: {error.strerror}") from None
        self._file: IO[bytes] = os.fdopen(handle, "wb")
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED)

    def add(self, document: object, tags: Mapping[str, str]) -> None:
        """A JSON document. Raises BadName."""
        self.add_bytes((json.dumps(document, indent=2) + "\n").encode(), "json", tags)

    def add_bytes(self, content: bytes, extension: str, tags: Mapping[str, str]) -> None:
        """Anything; documents of the same tags are its pages. Raises BadName."""
        key = path_of(tags, 0)
        page = self._pages.get(key, 0) + 1
        path = path_of(tags, page, extension)
        self._zip.writestr(path, content)
        self._pages[key] = page
        self._manifest[path] = [{"Name": name, "Value": value} for name, value in tags.items()]

    def finish(self) -> None:
        """Writes the manifest; the archive appears under its name."""
        listed = dict(sorted(self._manifest.items()))
        self._zip.writestr(MANIFEST, json.dumps(listed, indent=2) + "\n")
        self._zip.close()
        self._file.flush()
        if self._draft is not None:
            os.fsync(self._file.fileno())
        self._file.close()
        if self._draft is not None and self._place is not None:
            self._draft.replace(self._place)

    def discard(self) -> None:
        """Removes what there is so far."""
        with suppress(OSError):  # of a full disk
            self._zip.close()
        with suppress(OSError):
            self._file.close()
        if self._draft is not None:
            self._draft.unlink(missing_ok=True)


class Reader:
    """The documents of an archive by their tags."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError when it is none."""
        try:
            self._zip = zipfile.ZipFile(path)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            doing = "read" if isinstance(error, IsADirectoryError) else "open"
            raise UsageError(f"failed to open archive: {doing} {path}: {why}") from None
        except (zipfile.BadZipFile, NotImplementedError, ValueError):
            raise UsageError(f"failed to open archive: {path} is not a valid zip file") from None
        names = set(self._zip.namelist())
        if MANIFEST not in names:
            raise UsageError("failed to open archive: manifest file not found in archive")
        self._tags = _tags_of(self._document(MANIFEST))
        self._tagged = _by_tag(self._tags)
        for name in self._tags:
            if name not in names:
                raise UsageError(
                    f"failed to open archive: file {name} is in manifest, "
                    "but not present in archive"
                )

    def close(self) -> None:
        """Closes the file."""
        self._zip.close()

    def metadata(self) -> Document:
        """Who gathered it, when and where; empty when it does not say."""
        path = f"{ROOT}/misc/{METADATA}.json"
        return self._document(path) if path in self._tags else {}

    def names(self, label: str, **within: str) -> list[str]:
        """The values of a tag among files that have these other tags, sorted."""
        found = (self._tags[path] for path in self._paths(within))
        return sorted({tags[label] for tags in found if label in tags})

    def servers(self) -> Iterator[tuple[str, str]]:
        """Each cluster with each of its servers."""
        for cluster in self.names("cluster"):
            for server in self.names("server", cluster=cluster):
                yield cluster, server

    def each(self, **tags: str) -> Iterator[Document]:
        """The documents with all these tags, page by page. Raises UsageError for a broken one."""
        for _, document in self.tagged(**tags):
            yield document

    def tagged(self, **tags: str) -> Iterator[tuple[Mapping[str, str], Document]]:
        """The same, each with all of its tags."""
        for path in self._paths(tags):
            if path.endswith(".json"):
                yield self._tags[path], self._document(path)

    def contents(self, **tags: str) -> Iterator[tuple[Mapping[str, str], bytes]]:
        """What is no document, with its tags. Raises UsageError for a broken one."""
        for path in self._paths(tags):
            if not path.endswith(".json"):
                yield self._tags[path], self._content(path)

    def _paths(self, tags: Mapping[str, str]) -> Sequence[str]:
        """Files with all these tags, sorted. Only those of the rarest tag are looked at: who walks
        through all streams asks for each of them."""
        if not tags:
            return list(self._tags)
        rarest = min((self._tagged.get(tag, ()) for tag in tags.items()), key=len)
        return [path for path in rarest if tags.items() <= self._tags[path].items()]

    def _content(self, path: str) -> bytes:
        try:
            if self._zip.getinfo(path).file_size > DOCUMENT_BYTES_MAX:
                raise UsageError(f"{path} is larger than {DOCUMENT_BYTES_MAX} bytes")
            return self._zip.read(path)
        except (*_DAMAGED, OSError, EOFError) as error:
            raise UsageError(f"failed to decode file {path}: {error}") from None

    def _document(self, path: str) -> Document:
        try:
            return parse_object(self._content(path), bytes_max=DOCUMENT_BYTES_MAX)
        except DecodeError as error:
            raise UsageError(f"failed to decode file {path}: {error}") from None


def _tags_of(manifest: Document) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for path, tags in manifest.items():
        if not isinstance(tags, list) or not all(isinstance(tag, dict) for tag in tags):
            raise UsageError("failed to open archive: the manifest cannot be read")
        found[path] = {str(tag.get("Name")): str(tag.get("Value")) for tag in tags}
    return dict(sorted(found.items()))


def _by_tag(tags_of: Mapping[str, Mapping[str, str]]) -> dict[tuple[str, str], list[str]]:
    """The files that have each tag, in the order in which they are given."""
    found: dict[tuple[str, str], list[str]] = {}
    for path, tags in tags_of.items():
        for tag in tags.items():
            found.setdefault(tag, []).append(path)
    return found
