"""What a check found, and helpers with which rules walk through an archive."""

from collections.abc import Iterator
from dataclasses import field

from jsctl.commands.toolkit.archives.files import Document, Reader
from jsctl.dataclass import dataclass

PASS, WARN, FAIL, SKIP = "PASS", "WARN", "FAIL", "SKIP"
OUTCOMES = (PASS, WARN, FAIL, SKIP)
"""By the numbers that reports of `nats` have for them."""
NUMBER_MAX = 1 << 64


class CannotTell(Exception):
    """The archive lacks what a check needs."""


@dataclass(slots=True)
class Examples:
    """The first so many issues, and how many more there were."""

    limit: int = 0
    kept: list[str] = field(default_factory=list)
    dropped: int = 0

    def add(self, text: str) -> None:
        """One issue."""
        if self.limit and len(self.kept) >= self.limit:
            self.dropped += 1
        else:
            self.kept.append(text)

    def worst(self, outcome: str) -> str:
        """PASS without issues."""
        return outcome if self.kept else PASS


def at(document: object, *keys: str) -> object:
    """What is at a path of keys; None where there is nothing."""
    for key in keys:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def number(document: object, *keys: str) -> float:
    """A number; 0 where there is none that a server could mean."""
    found = at(document, *keys)
    return found if isinstance(found, int | float) and abs(found) <= NUMBER_MAX else 0


def text(document: object, *keys: str) -> str:
    """A text; empty where there is none."""
    found = at(document, *keys)
    return found if isinstance(found, str) else ""


def objects(document: object, *keys: str) -> list[Document]:
    """The objects of a list."""
    found = at(document, *keys)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def answers(reader: Reader, kind: str, complaint: str = "") -> Iterator[tuple[str, str, Document]]:
    """What each server answered: cluster, server, the data.

    Raises CannotTell with the complaint, if there is one, for a server without an answer.
    """
    for cluster, server in reader.servers():
        missing = True
        for document in reader.each(cluster=cluster, server=server, artifact_type=kind):
            missing = False
            data = at(document, "data")
            if isinstance(data, dict):
                yield cluster, server, data
        if missing and complaint:
            where = complaint.format(cluster=cluster, server=server)
            raise CannotTell(f"{where}: no file matched the given query")


def replicas(reader: Reader) -> Iterator[tuple[str, str, dict[str, Document]]]:
    """Account, stream, and what each server told about it."""
    for account in reader.names("account"):
        for stream in reader.names("stream", account=account):
            told: dict[str, Document] = {}
            for server in reader.names("server", account=account, stream=stream):
                for document in reader.each(
                    account=account, stream=stream, server=server, artifact_type="stream_info"
                ):
                    told[server] = document
            yield account, stream, told
