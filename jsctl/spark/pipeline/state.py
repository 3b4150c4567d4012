"""What a pipeline remembers beside Spark's own checkpoint, and who runs it.

    CHECKPOINT/spark/          Spark's
    CHECKPOINT/pipeline.json   the identity that its sinks are marked with
    CHECKPOINT/state.json      what the last run said of itself
    CHECKPOINT/lock            held while it runs
    CHECKPOINT/stop            a request to end

Everything is files, so `status` and `stop` work from another process, and from another machine
that shares the directory.
"""

import fcntl
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from jsctl.errors import Conflict, JsctlError
from jsctl.spark.pipeline.layout import hold_lock, read_json, write_json


@dataclass(frozen=True, slots=True)
class RunState:
    """What a run says of itself; times are nanoseconds since 1970.

    `state` is starting, running, stopped, finished or failed. `lag` is the number of messages
    that wait, -1 when unknown.
    """

    state: str
    host: str = ""
    pid: int = 0
    started: int = 0
    updated: int = 0
    batch: int = -1
    batches: int = 0
    rows: int = 0
    dead_letters: int = 0
    position: dict[str, int] = field(default_factory=dict)
    lag: int = -1
    error: str = ""


NEVER_RUN, UNKNOWN = RunState("never run"), RunState("unknown")
GOING = ("starting", "running")


class Checkpoint:
    """The directory of one pipeline."""

    def __init__(self, root: str) -> None:
        self.root = Path(root)

    @property
    def spark(self) -> Path:
        """What Spark gets as its checkpoint location."""
        return self.root / "spark"

    def prepare(self) -> str:
        """Make the directory; the pipeline's identity is returned. Raises JsctlError."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise JsctlError(f"checkpoint {self.root}: {error.strerror}") from None
        marker = self.root / "pipeline.json"
        if not marker.exists():
            write_json(marker, {"owner": str(uuid.uuid4())})
        return str(read_json(marker)["owner"])

    @contextmanager
    def running(self) -> Iterator[None]:
        """Held by a run. Raises Conflict when the pipeline runs elsewhere."""
        with hold_lock(self.root / "lock", "the pipeline is run already by"):
            (self.root / "stop").unlink(missing_ok=True)
            yield

    def is_running(self) -> bool:
        """Whether somebody holds the lock."""
        try:
            with (self.root / "lock").open("r+") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    def ask_to_stop(self) -> None:
        """Leave the request that a run looks for."""
        (self.root / "stop").touch()

    def asked_to_stop(self) -> bool:
        """Whether the request is there."""
        return (self.root / "stop").exists()

    def save(self, state: RunState) -> None:
        """Say how it goes."""
        write_json(self.root / "state.json", asdict(state))

    def state(self) -> RunState:
        """What the last run said; one that vanished without a word has failed."""
        path = self.root / "state.json"
        if not path.exists():
            return NEVER_RUN
        found = _told(read_json(path))
        if found.state in GOING and not self.is_running():
            found = _told(read_json(path))  # it may have ended in between
        if found.state in GOING and not self.is_running():
            return replace(found, state="failed", error="the process is gone")
        return found

    def position(self) -> dict[str, int]:
        """The last sequence of each stream that a committed batch has read."""
        batch = self.committed()
        path = self.spark / "offsets" / str(batch)
        if batch < 0 or not path.is_file():
            return {}
        return reached(path.read_text(encoding="utf-8").splitlines()[-1])

    def committed(self) -> int:
        """The last batch that is done, -1 without any."""
        return _last_batch(self.spark / "commits")


def _told(document: Mapping[str, object]) -> RunState:
    """What a run of any version said: what is not known here counts for nothing."""
    known: dict[str, Any] = {
        one.name: document[one.name]
        for one in fields(RunState)
        if type(document.get(one.name)) is type(getattr(NEVER_RUN, one.name))
    }
    told = replace(UNKNOWN, **known)
    reached = {name: seq for name, seq in told.position.items() if isinstance(seq, int)}
    return replace(told, position=reached)


def _last_batch(directory: Path) -> int:
    names = [path.name for path in directory.glob("[0-9]*")] if directory.is_dir() else []
    return max((int(name) for name in names if name.isdigit()), default=-1)


def reached(offset: Any) -> dict[str, int]:
    """Stream -> last sequence that an offset of the source covers; empty for other sources."""
    try:
        found = json.loads(offset) if isinstance(offset, str) else offset
        return {name: int(one["next"]) - 1 for name, one in found["streams"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


class Registry:
    """The pipelines that were run on this machine, by name."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def default(cls, environ: Mapping[str, str]) -> "Registry":
        """Where they are noted."""
        home = environ.get("XDG_STATE_HOME")
        base = Path(home) if home else Path.home() / ".local" / "state"
        return cls(base / "jsctl" / "pipelines")

    def note(self, name: str, path: str, checkpoint: str) -> None:
        """Remember a pipeline. Raises Conflict when the name is another file's that still runs."""
        known = self.known().get(name)
        other = known["checkpoint"] if known else checkpoint
        if other != checkpoint and Checkpoint(other).is_running():
            raise Conflict(f"another pipeline named {name} is running")
        self.root.mkdir(parents=True, exist_ok=True)
        write_json(self.root / f"{name}.json", {"path": path, "checkpoint": checkpoint})

    def known(self) -> dict[str, dict[str, str]]:
        """Name -> path of the file, and the checkpoint. Raises JsctlError."""
        return {path.stem: _noted(path) for path in sorted(self.root.glob("*.json"))}


def _noted(path: Path) -> dict[str, str]:
    document = read_json(path)
    found = {key: document.get(key) for key in ("path", "checkpoint")}
    if not all(isinstance(one, str) for one in found.values()):
        raise JsctlError(f"{path} names no pipeline; remove it, or use the version that wrote it")
    return {key: str(one) for key, one in found.items()}


def this_host() -> str:
    """The name of this machine."""
    return os.uname().nodename
