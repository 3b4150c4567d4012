"""Descriptions of errors: the built-in ones, or those of a file that servers are made from."""

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from jsctl.api.error_table import ROWS
from jsctl.api.jsontext import of_people
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError

CODE_MAX = 65_535
COMMENTS: Mapping[int, str] = {
    10005: "Error causing no peers to be available",
    10012: "General consumer creation failure string",
    10029: "generic mirror consumer setup failure string",
    10041: "General RAFT error string",
    10045: "General source consumer setup failure string",
    10048: "Generic stream assignment error string",
    10049: "Generic stream creation error string",
    10050: "General stream deletion error string",
    10051: "General stream failure string",
    10052: "Stream configuration validation error string",
    10053: "General stream limits exceeded error string",
    10057: "Generic message deletion failure error string",
    10066: "Generic template creation failed string",
    10067: "Generic stream template deletion failed error string",
    10069: "Generic stream update error string",
    10077: "Generic error when storing a message failed",
    10094: "Generic delivery policy error",
    10110: "Generic stream purge failure error string",
    10111: "Generic stream rollup failure error string",
    10140: "source stream, filter and transform (plus external if present) must form a unique "
    "combination",
    10148: "action CREATE is used for a existing consumer with a different config",
    10149: "action UPDATE is used for a nonexisting consumer",
}
"""What the descriptions leave open."""

HELP: Mapping[int, str] = {
    10039: "This error indicates that JetStream is not enabled for an account account level",
    10076: "This error indicates that JetStream is not enabled at a global level",
    10094: "Error returned for impossible deliver policies when combined with start sequences etc",
    10112: "Returned when the delivery subject on a Push Consumer is not a valid NATS Subject",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorDescription:
    """One error, with the fields of the server's own list."""

    constant: str = ""
    code: int = 0
    error_code: int = 0
    description: str = ""
    comment: str = ""
    help: str = ""
    url: str = ""
    deprecates: str = ""


_FIELDS: Mapping[str, type] = {
    one.name: int if one.name in ("code", "error_code") else str for one in fields(ErrorDescription)
}


def built_in() -> list[ErrorDescription]:
    """Those of the server that this program knows."""
    return [
        ErrorDescription(
            constant=constant,
            code=code,
            error_code=error_code,
            description=description,
            comment=COMMENTS.get(error_code, ""),
            help=HELP.get(error_code, ""),
        )
        for constant, code, error_code, description in ROWS
    ]


def load(path: str) -> list[ErrorDescription]:
    """Those of a file, or the built-in ones without. Raises JsctlError."""
    if not path:
        return built_in()
    try:
        found = of_people(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise JsctlError(f"open {path}: {(error.strerror or '').lower()}") from None
    except ValueError as error:
        raise JsctlError(f"{path} is not JSON: {error}") from None
    if not isinstance(found, list | None):
        raise JsctlError(f"{path} is not a list of errors")
    return [described(one, path) for one in found or ()]


def described(found: object, path: str) -> ErrorDescription:
    """One document as a description; unknown keys are passed over. Raises JsctlError."""
    if not isinstance(found, dict):
        raise JsctlError(f"{path}: an error is an object")
    given = {key.lower(): value for key, value in found.items() if value is not None}
    values: dict[str, Any] = {}
    for key, kind in _FIELDS.items():
        value = given.get(key, kind())
        is_code = isinstance(value, int) and 0 <= value <= CODE_MAX
        if type(value) is not kind or (key == "error_code" and not is_code):
            wanted = "a text" if kind is str else "a number" if key == "code" else "a code"
            raise JsctlError(f"{path}: {key} of an error is {wanted}, not {json.dumps(value)}")
        values[key] = value
    return ErrorDescription(**values)


def faults(one: ErrorDescription) -> list[str]:
    """What is wrong with a description."""
    text = one.description
    whole_token = text.startswith("{") and text.find("}") == len(text) - 1
    found = (
        (whole_token and not one.comment, "token only descriptions requires a comment"),
        (one.error_code < 1000, "error codes may not be below 10000"),
        (one.code == 0, "code is require"),
        (not one.constant, "constant is required"),
        (not text, "description is required"),
        (text.count("{") != text.count("}"), "unmatched number of { and }"),
        (
            "{" in text and not one.constant.endswith("F"),
            "constants for errors with tokens must end in F like JSStreamMsgDeleteFailedF",
        ),
    )
    return [sentence for wrong, sentence in found if wrong]
