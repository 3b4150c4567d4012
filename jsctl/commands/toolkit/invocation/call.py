"""One invocation of a command: its values by name, where output goes, how to connect."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from jsctl.api.times import parse_duration
from jsctl.commands.toolkit.grammar.spec import Command, resolve
from jsctl.commands.toolkit.grammar.values import Value, parse_counted, parse_size
from jsctl.commands.toolkit.invocation.output import Output
from jsctl.commands.toolkit.invocation.prompts import NOT_CONFIRMED, Prompts
from jsctl.errors import UsageError
from jsctl.settings import Settings

if TYPE_CHECKING:
    from jsctl.client.library import NatsClient
    from jsctl.client.manager import Manager
    from jsctl.client.system import SystemSource


class Call:
    """What a command's function gets. Values are checked already; getters convert them."""

    def __init__(
        self,
        values: Mapping[str, Value],
        defaults: Mapping[str, str],
        settings: Settings,
        output: Output,
        prompts: Prompts,
    ) -> None:
        self.values = values
        self.defaults = defaults
        self.settings = settings
        self.output = output
        self.prompts = prompts
        self._kept: NatsClient | None = None

    def given(self, name: str) -> bool:
        """Whether the option or argument was on the command line."""
        return self.values.get(name) not in (None, ())

    def text(self, name: str) -> str:
        """Text, the default when not given."""
        value = self.values.get(name)
        return value if isinstance(value, str) else self.defaults.get(name, "")

    def flag(self, name: str) -> bool:
        """A flag, or a switch that has its default when not given."""
        value = self.values.get(name)
        return value if isinstance(value, bool) else self.defaults.get(name) == "true"

    def switch(self, name: str) -> bool | None:
        """A switch: on, off, or None when not given."""
        value = self.values.get(name)
        return value if isinstance(value, bool) else None

    def texts(self, name: str) -> tuple[str, ...]:
        """All values of a repeated option or trailing argument."""
        value = self.values.get(name)
        return value if isinstance(value, tuple) else ()

    def words(self, name: str) -> tuple[str, ...]:
        """The same, split on commas and spaces; an empty one stays. Raises UsageError."""
        parts = [text.replace(",", " ").split() if text else [""] for text in self.texts(name)]
        if not all(parts):
            raise UsageError(f"--{name}: expected a value, got nothing but spaces")
        return tuple(word for part in parts for word in part)

    def integer(self, name: str, default: int = 0) -> int:
        """A whole number. Raises UsageError: arguments are not checked before."""
        text = self.text(name)
        try:
            return parse_counted(text) if text else default
        except ValueError:
            raise UsageError(f"{name}: expected a whole number, got '{text}'") from None

    def duration(self, name: str, default: int = 0) -> int:
        """Nanoseconds. Raises UsageError."""
        text = self.text(name)
        try:
            return parse_duration(text) if text else default
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from None

    def size(self, name: str, default: int = -1) -> int:
        """Bytes."""
        text = self.text(name)
        return parse_size(text) if text else default

    def mapping(self, name: str) -> dict[str, str]:
        """`K=V` and `K:V` options as a dict."""
        found: dict[str, str] = {}
        for text in self.texts(name):
            at = min(position for mark in "=:" if (position := text.find(mark)) >= 0)
            found[text[:at]] = text[at + 1 :]
        return found

    @property
    def as_json(self) -> bool:
        """Whether `-j` or a machine format was asked for."""
        return self.flag("json") or self.output.form in ("json", "jsonl", "yaml")

    @property
    def as_data(self) -> bool:
        """The same, or any other format that a document can have: of what has no table."""
        return self.flag("json") or self.output.asked

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment of the process."""
        return os.environ

    def confirm(self, question: str, *, default: bool = False, prefix: str = NOT_CONFIRMED) -> bool:
        """True with `--force`, else asks; `prefix` is in front of why it cannot."""
        return self.flag("force") or self.prompts.confirm(question, default=default, prefix=prefix)

    @asynccontextmanager
    async def client(self, what: str = "") -> "AsyncIterator[NatsClient]":
        """A connection; `what` is said in front of the reason when there can be none."""
        if self._kept is not None:
            yield self._kept
            return
        from jsctl.client.connection import connect

        async with connect(self.settings, self.output.log, what=what) as client:
            yield client

    @asynccontextmanager
    async def one_connection(self) -> AsyncIterator[None]:
        """Within it everything is asked on the same connection."""
        if self.settings.monitor or self._kept is not None:
            yield
            return
        async with self.client() as self._kept:
            try:
                yield
            finally:
                self._kept = None

    def keep(self, client: "NatsClient") -> None:
        """From now on everything is asked on this connection, which is the caller's."""
        self._kept = client

    @asynccontextmanager
    async def manager(self, what: str = "setup failed") -> "AsyncIterator[Manager]":
        """A connection with the JetStream API on it; `what` as for `client`."""
        from jsctl.client.manager import Manager

        async with self.client(what) as client:
            try:
                manager = Manager(client, self.settings, self.output.log)
            except UsageError as error:
                text = f"{what}: {error}" if what else str(error)
                raise UsageError(text, hints=error.hints) from None
            yield manager

    @asynccontextmanager
    async def system(self) -> "AsyncIterator[SystemSource]":
        """The system account, the monitoring ports when some are set, or an `--archive`."""
        from jsctl.client.system import open_system

        if self.text("archive"):
            from jsctl.commands.toolkit.archives.source import open_archive

            with open_archive(Path(self.text("archive")).expanduser()) as archive:
                yield archive
            return

        if self.settings.monitor:
            yield open_system(None, self.settings)
            return
        async with self.client() as client:
            yield open_system(client, self.settings)


Run = Callable[[Call], "int | Awaitable[int | None] | None"]


def function_of(command: Command) -> Run:
    """The function that runs a command."""
    return cast(Run, resolve(command.run))
