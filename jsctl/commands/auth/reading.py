"""Keys in files, as commands take them."""

from pathlib import Path

from jsctl.auth.keys import KeyPair, KeyProblem, from_public, from_seed, is_encoded
from jsctl.auth.urls import UrlProblem, parse_url
from jsctl.errors import JsctlError, NotFound, UsageError
from jsctl.files import read_bytes


def existing(name: str) -> Path:
    """A file that is there. Raises NotFound."""
    path = Path(name)
    if not path.exists():
        raise NotFound(f"path '{name}' does not exist")
    if path.is_dir():
        raise NotFound(f"'{name}' is a directory")
    return path


def read_url(text: str) -> str:
    """A URL of the command line in its normal form. Raises UsageError."""
    try:
        return str(parse_url(text))
    except UrlProblem as problem:
        raise UsageError(f'invalid URL: parse "{text}": {problem}') from None


def read_key_file(name: str) -> str:
    """The first line of a file that is a key. Raises JsctlError."""
    for line in read_bytes(Path(name)).split(b"\n"):
        text = line.decode("ascii", "replace").rstrip("\r")
        if is_encoded(text):
            return text
    raise JsctlError(f"could not find a valid key in {name}")


def pair_of_file(name: str) -> KeyPair:
    """A pair from a file with a public key or a seed. Raises JsctlError."""
    text = read_key_file(name)
    try:
        return from_public(text)
    except KeyProblem:
        return from_seed(text)
