"""A bundle as it is read: from a directory, a ZIP archive, or such an archive behind a URL."""

import json
import lzma
import stat
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from jsctl.commands.toolkit.templating.lexing import LEFT, RIGHT
from jsctl.errors import JsctlError, NotFound, Unreachable, UsageError, sentence_of
from jsctl.files import read_bytes

FILES_MAX = 1000
BYTES_MAX = 8 * 1024 * 1024
"""Of all files together, unpacked; a bundle is some pages of text."""
DOCUMENT_MAX = 256 * 1024
FETCH_S = 60
SILENCE_S = 15
_TRUE = ("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y")

_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError)

Reader = Callable[[str], Mapping[str, bytes]]
"""All files at or below a name, by their names; a folder's name ends with a slash."""


class Bundle(NamedTuple):
    """What a bundle says and brings; `files` are its templates, by name below their folder."""

    before: str
    after: str
    needs_operator: bool
    form: object
    files: Mapping[str, bytes]
    delimiters: tuple[str, str]
    skips_empty: bool


def load(source: str) -> Bundle:
    """Reads all of it. Raises JsctlError."""
    if "://" in source:
        return _bundle(_unpacked(_fetched(source)))
    path = Path(source).expanduser()
    if path.is_dir():
        return _bundle(lambda name: _below(path, name))
    return _bundle(_unpacked(read_bytes(path)))


def document_of(text: bytes, name: str) -> object:
    """A YAML document, all of whose scalars are texts. Raises JsctlError."""
    import yaml

    if len(text) > DOCUMENT_MAX:
        raise JsctlError(f"{name} is larger than {DOCUMENT_MAX} bytes")
    try:
        return yaml.BaseLoader(text).get_single_data()  # knows only texts, lists and maps
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0] or "too deep"
        raise JsctlError(f"yaml: {name}: {reason}") from None


def is_true(value: object) -> bool:
    """Of a scalar."""
    return value in _TRUE


def _bundle(reader: Reader) -> Bundle:
    head = document_of(_file(reader, "bundle.yaml"), "bundle.yaml")
    if not isinstance(head, Mapping) or not head.get("description"):
        raise UsageError("bundles require a description")
    requires = head.get("requires")
    scaffold = _scaffold(_file(reader, "scaffold.json", "no scaffold found"))
    folder = _inside(str(scaffold.get("source_directory") or "scaffold"))
    files = {
        name[len(folder) + 1 :]: content
        for name, content in reader(folder).items()
        if name != folder and not _is_partial_only(name)
    }
    if not files:
        raise NotFound(f"cannot read source directory: the bundle has no folder {folder}")
    form = reader("form.yaml").get("form.yaml")
    left, right = scaffold.get("left_delimiter") or "", scaffold.get("right_delimiter") or ""
    if bool(left) != bool(right):
        raise UsageError("both left_delimiter and right_delimiter must be set")
    return Bundle(
        before=str(head.get("pre_scaffold") or ""),
        after=str(head.get("post_scaffold") or ""),
        needs_operator=isinstance(requires, Mapping) and is_true(requires.get("operator")),
        form=None if form is None else document_of(form, "form.yaml"),
        files=files,
        delimiters=(str(left or LEFT), str(right or RIGHT)),
        skips_empty=scaffold.get("skip_empty", True) is not False,
    )


def _is_partial_only(name: str) -> bool:
    return name.endswith("/") and "_partials" in name.split("/")


def _scaffold(text: bytes) -> Mapping[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JsctlError(f"scaffold.json: {error}") from None
    if not isinstance(found, dict):
        raise JsctlError("scaffold.json: it is no object")
    settings = {str(key).lower().replace("_", ""): key for key in found}
    named = {one: found[settings[one.replace("_", "")]] for one in _KEYS if _known(one, settings)}
    if named.get("source"):
        raise UsageError("scaffold supports only source directory configuration")
    if named.get("post"):
        raise UsageError(
            "the bundle wants to run commands on what it writes; they are not run",
            hints=("take `post` out of its scaffold.json and run them yourself",),
        )
    return named


_KEYS = ("source", "source_directory", "post", "left_delimiter", "right_delimiter", "skip_empty")


def _known(key: str, settings: Mapping[str, object]) -> bool:
    return key.replace("_", "") in settings


def _file(reader: Reader, name: str, missing: str = "") -> bytes:
    found = reader(name).get(name)
    if found is None:
        raise NotFound(missing or f"open {name}: no such file or directory")
    return found


def _inside(name: str) -> str:
    """A name below the bundle, without what means nothing. Raises UsageError."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        raise UsageError(f"insecure paths found in archive: {name!r}")
    return "/".join(parts)


def _below(root: Path, name: str) -> Mapping[str, bytes]:
    """Of a directory. What is neither file nor directory is refused, links among it."""
    found: dict[str, bytes] = {}
    size, waiting = 0, [name]
    while waiting:
        now = waiting.pop()
        path = root / now
        try:
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                waiting += [f"{now}/{one.name}" for one in path.iterdir()]
                found[now + "/"] = b""
            elif stat.S_ISREG(mode):
                found[now] = read_bytes(path)
            else:
                raise UsageError(f"invalid file in source: {now}")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise JsctlError(sentence_of(error, path)) from None
        size += len(found.get(now, b""))
        _bounded(len(found) + len(waiting), size)
    return found


def _bounded(count: int, size: int) -> None:
    if count > FILES_MAX:
        raise JsctlError(f"the bundle has more than {FILES_MAX} files")
    if size > BYTES_MAX:
        raise JsctlError(f"the bundle is larger than {BYTES_MAX} bytes")


def _unpacked(content: bytes) -> Reader:
    """Of an archive, unpacked in memory; what its catalogue says of sizes is not believed."""
    found: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            entries = archive.infolist()
            _bounded(len(entries), 0)
            left = BYTES_MAX
            for entry in entries:
                name = _inside(entry.filename)
                if entry.is_dir():
                    found[name + "/"] = b""
                    continue
                with archive.open(entry) as file:
                    found[name] = file.read(left + 1)
                left -= len(found[name])
                _bounded(0, BYTES_MAX - left)
    except (*_DAMAGED, EOFError, NotImplementedError, ValueError) as error:
        raise UsageError(f"zip: not a valid zip file: {error}") from None
    except RuntimeError:  # of one with a password
        raise UsageError("zip: encrypted archives are not read") from None

    def below(name: str) -> Mapping[str, bytes]:
        return {
            one: text for one, text in found.items() if one == name or one.startswith(name + "/")
        }

    return below


def _fetched(url: str) -> bytes:
    """What is behind a URL, within a limit of bytes and of time."""
    from http.client import HTTPException
    from urllib import request

    scheme = url.partition("://")[0].lower()
    if scheme not in ("http", "https"):
        raise UsageError(f"invalid URL {url!r}: bundles come over http and https")
    opener = request.OpenerDirector()
    for handler in (
        *(request.ProxyHandler(), request.HTTPHandler(), request.HTTPSHandler()),
        *(request.HTTPDefaultErrorHandler(), request.HTTPRedirectHandler()),
        *(request.HTTPErrorProcessor(), request.UnknownHandler()),
    ):
        opener.add_handler(handler)
    ends, parts, size = time.monotonic() + FETCH_S, list[bytes](), 0
    try:
        with opener.open(url, timeout=SILENCE_S) as answer:
            while part := answer.read1(65536):
                parts.append(part)
                size += len(part)
                _bounded(0, size)
                if time.monotonic() > ends:
                    raise Unreachable(f"fetching {url} took longer than {FETCH_S} s")
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise Unreachable(f"cannot fetch {url}: {reason}") from None
    return b"".join(parts)
