"""Configurations in files: read from one, or changed in the user's editor."""

from pathlib import Path
from typing import TypeVar

from jsctl.api.codec import DecodeError, decode, keys_of
from jsctl.api.jsontext import of_people
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError

T = TypeVar("T")


def load_config(path: str, cls: type[T]) -> T:
    """A configuration from a file: itself, or the `config` of an info document.

    Raises UsageError.
    """
    try:
        document = of_people(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"path '{path}' does not exist") from None
    except OSError as error:
        raise UsageError(f"could not read {path}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from None
    if isinstance(document, dict) and isinstance(document.get("config"), dict):
        document = document["config"]
    try:
        _check_types(cls, document)
        return decode(cls, document)
    except DecodeError as error:
        raise UsageError(f"{path}: {error}") from None


def _check_types(cls: type, document: object) -> None:
    """Raises DecodeError for a value of another kind: a text is not to be taken for a list of its
    letters. Fields that are not known here may be those of a newer server, which is asked."""
    known = keys_of(cls)
    if isinstance(document, dict):
        document = {key: value for key, value in document.items() if key in known}
    decode(cls, document, strict=True)


def edited(call: Call, config: T, cls: type[T], what: str) -> T:
    """The configuration after a person changed it in $EDITOR.

    Raises UsageError, with `what` in front.
    """
    import subprocess
    import tempfile

    from jsctl.render.formats import as_json

    editor = call.environ.get("EDITOR")
    if not editor:
        raise UsageError(f"{what}: set EDITOR environment variable to your chosen editor")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "configuration.json"
        path.write_text(as_json(config) + "\n", encoding="utf-8")
        if subprocess.run([*editor.split(), str(path)], check=False).returncode:
            raise UsageError(f"{what}: {editor} failed")
        return load_config(str(path), cls)
