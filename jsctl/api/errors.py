"""Errors of the JetStream API: one table, one exception, one JSON body.

`api_error("JSStreamNotFoundErr")` makes the error of that row. Texts with holes take their
parts by name: `api_error("JSStreamInvalidConfigF", err="...")`.
"""

from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiErrorBody:
    """The `error` of an answer; `code` is like an HTTP status."""

    code: int = 0
    err_code: int = 0
    description: str = ""


class ApiError(Exception):
    """A request that the server refuses.

    `code` is like an HTTP status, `err_code` names the row of the table.
    """

    def __init__(self, code: int, err_code: int, description: str) -> None:
        self.code = code
        self.err_code = err_code
        self.description = description
        super().__init__(f"{description} ({err_code})")

    @property
    def name(self) -> str:
        """The constant of this error, empty when the table does not have it."""
        from jsctl.api.error_table import ROWS  # only those who make errors need the table

        return next((row[0] for row in ROWS if row[2] == self.err_code), "")

    def body(self) -> ApiErrorBody:
        """For an answer's `error`."""
        return ApiErrorBody(code=self.code, err_code=self.err_code, description=self.description)

    @classmethod
    def of(cls, body: ApiErrorBody) -> "ApiError":
        """The exception for an answer's `error`."""
        return cls(body.code, body.err_code, body.description)


def api_error(name: str, **parts: object) -> ApiError:
    """The error of a row; raises KeyError for a name that the table does not have."""
    from jsctl.api.error_table import ROWS

    for constant, code, err_code, description in ROWS:
        if constant == name:
            for hole, part in parts.items():
                description = description.replace("{" + hole + "}", str(part))
            return ApiError(code, err_code, description)
    raise KeyError(name)
