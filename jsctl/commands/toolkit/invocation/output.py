"""Where the words of a command go: the answer to stdout, everything else to stderr."""

import os
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TextIO, TypeVar

from jsctl.render.column import Column
from jsctl.render.details import FACT_COLUMNS, Details
from jsctl.render.humanize import counted
from jsctl.render.table import readable, safe, table
from jsctl.render.theme import PLAIN, Theme, theme_of

R = TypeVar("R")
_TABLE_FORMATS = {"markdown": "md"}
_FORMATS_OF_ROWS = frozenset({"csv", "tsv", "md", "names"})
_SEPARATORS = {"csv": ",", "tsv": "\t"}
"""Of tables as they are drawn; those of `-o csv` are for programs."""


class Output:
    """Prints for one run. `form` is table, json, jsonl, yaml, csv, tsv, md or names."""

    def __init__(
        self,
        stdout: TextIO,
        stderr: TextIO,
        theme: Theme = PLAIN,
        form: str = "table",
        *,
        asked: bool = False,
    ) -> None:
        """`asked` says that the format was asked for by name, and not only a look of tables."""
        self.stdout = stdout
        self.stderr = stderr
        self.theme = theme
        self.form = form
        self.asked = asked and form != "table"
        self._terminal = stdout
        self._columns: Sequence[str] | None = None

    def redirect(self, stdout: TextIO) -> None:
        """The answer goes elsewhere; it is still laid out for the terminal it had."""
        self.stdout = stdout

    @property
    def width(self) -> int:
        """Columns of the terminal, 0 when there is none: nothing is cut there."""
        return self._size()[0]

    @property
    def height(self) -> int:
        """Lines of the terminal, 0 when there is none."""
        return self._size()[1]

    def _size(self) -> tuple[int, int]:
        if not self._terminal.isatty():
            return 0, 0
        try:
            return os.get_terminal_size(self._terminal.fileno())
        except OSError:
            return 0, 0

    @property
    def machine(self) -> bool:
        """Whether the answer is for programs."""
        return self.form not in ("table", "md")

    def print(self, text: str = "") -> None:
        """A line of the answer; an empty one is for people."""
        if text or not self.asked:
            self.stdout.write(text + "\n")

    def names(self, names: Iterable[str]) -> None:
        """Names, one a line: as they are for programs, what is not seen made visible to people.

        In a format that was asked for they are a list.
        """
        if self.asked and self.form != "names":
            self.json([*names])
            return
        people = self._terminal.isatty()
        for name in names:
            self.print(safe(name) if people else name)

    def say(self, text: str) -> None:
        """A sentence beside the answer: with it for people, apart from it for programs."""
        if self.asked:
            self.note(text.strip())
        else:
            self.print(readable(text))

    def tell(self, text: str, document: object) -> None:
        """What was done: a sentence, or the same as a document where a format was asked for."""
        if self.asked:
            self.json(document)
        else:
            self.print(text)

    def note(self, text: str) -> None:
        """A line that is not part of the answer; names in it may be anybody's."""
        self.stdout.flush()
        self.stderr.write(readable(text) + "\n")
        self.stderr.flush()

    def log(self, text: str) -> None:
        """A note with the time of day, as natscli logs."""
        self.note(f"{time.strftime('%H:%M:%S')} {text}")

    def json(self, value: object) -> None:
        """A document in the chosen format; JSON unless another one was asked for."""
        from jsctl.render import formats

        if self.asked and self.form in _FORMATS_OF_ROWS:
            self.print(formats.document_rows(value, self.form))
            return
        if self.form == "yaml":
            self.print(formats.as_yaml(value))
        elif self.form == "jsonl":
            self.print(formats.as_json_line(value))
        else:
            self.print(formats.as_json(value))

    def json_line(self, value: object, *, varied: bool = False) -> None:
        """A document of many that come one by one: a line, a YAML document, or a row.

        All rows have the columns of the first one. Those of a run have the same keys, or are
        `varied`: then what there is no column for stands in one more, as JSON.
        """
        from jsctl.render import formats

        if self.asked and self.form in _FORMATS_OF_ROWS:
            text, self._columns = formats.document_row(
                value, self.form, self._columns, varied=varied
            )
            self.print(text)
        elif self.form == "yaml":
            self.print(f"---\n{formats.as_yaml(value)}")
        else:
            self.print(formats.as_json_line(value))

    def table(
        self,
        rows: Sequence[R],
        columns: Sequence[Column[R]],
        title: str,
        *,
        raw: bool = False,
        footer: Sequence[str | int | float] = (),
        rules_after: Collection[int] = (),
    ) -> None:
        """A report in the chosen format."""
        if self.form != "table":
            from jsctl.render.formats import render_rows

            self.print(render_rows(rows, columns, self.form, title=title))
            return
        whole = footer or self.theme.separator or self.theme.pipes
        shown = list(columns) if whole else self.fitting(rows, columns, raw=raw)
        cells = [[column.cell(row, raw=raw) for column in shown] for row in rows]
        self.print(
            table(
                [column.title for column in shown],
                cells,
                title=title,
                footer=footer,
                theme=self.theme,
                width_max=self.width,
                rules_after=rules_after,
            )
        )

    def report(
        self,
        rows: Sequence[R],
        columns: Sequence[Column[R]],
        title: str,
        footer: Sequence[str | int | float] = (),
    ) -> None:
        """A table with an empty line below it, as most of `nats` have; without it for programs."""
        self.table(rows, columns, title, footer=footer)
        if not self.machine:
            self.print()

    def fitting(
        self, rows: Sequence[R], columns: Sequence[Column[R]], *, raw: bool = False
    ) -> list[Column[R]]:
        """Columns that fit the terminal: those of low priority go first."""
        shown = list(columns)
        if not self.width:
            return shown
        wide = {
            column.key: max(len(str(column.cell(row, raw=raw))) for row in rows) if rows else 0
            for column in shown
        }
        while sum(max(wide[c.key], len(c.title)) + 3 for c in shown) + 1 > self.width:
            weakest = max(shown, key=lambda column: column.priority)
            if not weakest.priority:
                break
            shown.remove(weakest)
        hidden = len(columns) - len(shown)
        if hidden:
            self.note(f"{counted(hidden, 'column')} hidden, a wider terminal shows all")
        return shown

    def details(self, screen: Details) -> None:
        """An info screen; as rows of section, name and value where a table is asked for. What
        changes tables alone (`NATS_TABLE_FORMAT`) is nothing to it."""
        if self.form in ("csv", "tsv"):
            from jsctl.render.formats import render_rows

            self.print(render_rows(screen.facts(), FACT_COLUMNS, self.form))
            return
        theme = replace(self.theme, markdown=True) if self.form == "md" else self.theme
        self.stdout.write(screen.render(theme))


def make_output(render: str, scheme: str, environ: Mapping[str, str]) -> Output:
    """The output of this process: colours and box characters as the terminal allows."""
    colour = bool(environ.get("FORCE_COLOR") or environ.get("CLICOLOR_FORCE")) or (
        sys.stdout.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    )
    wanted = environ.get("NATS_TABLE_FORMAT", "").lower()
    for_models = environ.get("LLMFORMAT") == "1"
    ascii_only = (
        bool(environ.get("JSCTL_ASCII"))
        or wanted == "ascii"
        or environ.get("TERM") == "dumb"
        or not _can_draw(sys.stdout)
    )
    form = render or ("md" if for_models else _TABLE_FORMATS.get(wanted, wanted))
    separator = "" if render else _SEPARATORS.get(form, "")
    pipes = form == "md" and not render
    drawn = bool(separator) or pipes
    if drawn or form not in ("table", "json", "jsonl", "yaml", "csv", "tsv", "md", "names"):
        form = "table"
    if scheme == "double" and not sys.stdout.isatty():
        scheme = ""
    theme = replace(
        theme_of(scheme, colour=colour, ascii_only=ascii_only),
        separator=separator,
        pipes=pipes,
        markdown=for_models,
    )
    return Output(sys.stdout, sys.stderr, theme, form, asked=bool(render))


def _can_draw(stream: TextIO) -> bool:
    try:
        "╭─│".encode(stream.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True
