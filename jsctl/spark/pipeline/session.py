"""A session that is started when it is first needed, and ended by who started it."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class LazySession:
    """Where and how to start Spark; `told` hears what is being done.

    A session that the process has already is taken as it is, and left alone in the end.
    """

    app: str
    master: str
    memory: str
    log_file: Path
    conf: Mapping[str, str] = field(default_factory=dict)
    short: bool = False
    told: Callable[[str], None] = field(default=lambda _text: None)
    _started: "SparkSession | None" = None

    def start(self) -> "SparkSession":
        """The session. Raises JsctlError when Spark or Java is missing or does not start."""
        there = self._started or _active()
        if there is not None:
            return there
        from jsctl.spark.runtime import start_session

        self.told("starting Java")
        defaults = {}
        if self.master.startswith("local"):
            defaults["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 2)
        self._started = start_session(
            self.app,
            master=self.master,
            memory=self.memory,
            log_file=self.log_file,
            conf={**defaults, **self.conf},
            short=self.short,
        )
        self.told("warming up")
        return self._started

    def close(self) -> None:
        """End what was started here."""
        if self._started is not None:
            from jsctl.spark.runtime import stop_session

            stop_session(self._started)
            self._started = None


def _active() -> "SparkSession | None":
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return None
    return SparkSession.getActiveSession()
