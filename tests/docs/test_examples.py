"""The examples of the documents are run, and what stands below them is what they say.

With `REWRITE=1` what an example tells is written below it, where something else stands there.
"""

import os
from pathlib import Path

import pytest

from tests.docs.comparing import ANY, says
from tests.docs.reading import Page
from tests.docs.running import Reader, served
from tests.support.command_line import FOREIGN

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    Page(path)
    for path in (
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "docs" / "commands").glob("*.md")),
    )
]
NOT_RUN = Path(__file__).with_name("not_run.txt")
NOT_RUN_MAX = 60
WITH_EXAMPLES = [page for page in PAGES if any(not one.why_not for one in page.examples)]


def name_of(page: Page) -> str:
    """From the root."""
    return str(page.path.relative_to(ROOT))


@pytest.mark.processes
@pytest.mark.timeout(900)  # Of two clusters, one after the other, on a machine that is busy.
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_examples_do_what_is_shown(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        if name.startswith((*FOREIGN, "CLICOLOR")):
            monkeypatch.delenv(name)
    if os.environ.get("REWRITE"):
        reader = followed(page, tmp_path / "rewriting", patient=False)
        rewrite(page, reader.told)
    else:
        reader = followed(page, tmp_path / "once")
    if reader.wrong and page.servers > 1:
        reader = followed(page, tmp_path / "again")
    assert not reader.wrong, "\n\n".join(reader.wrong)


def followed(page: Page, folder: Path, *, patient: bool = True) -> Reader:
    """After all of a page.

    On a busy machine a cluster can be without a leader for a while, and no client sends again what
    nobody answered; a page that lies does so again on other servers.
    """
    work = folder / "work"
    work.mkdir(parents=True)
    with served(page) as brokers:
        reader = Reader(page, work, brokers, patient=patient)
        reader.follow()
    return reader


def test_what_is_not_run_is_listed_with_its_reason() -> None:
    listed = "".join(
        f"{name_of(page)}: {one.command.strip()}\n    {one.why_not}\n"
        for page in PAGES
        for one in page.examples
        if one.why_not
    )
    if os.environ.get("REWRITE"):
        NOT_RUN.write_text(listed)
    assert NOT_RUN.read_text() == listed, "REWRITE=1 writes it anew"
    assert listed.count("\n    ") <= NOT_RUN_MAX


def rewrite(page: Page, told: dict[int, str]) -> None:
    """Put what examples told below them; from the end, so that lines stay where they are."""
    lines = page.text.split("\n")
    for one in reversed(page.examples):
        text = told.get(one.line, "")
        shown = one.line in told and bool(one.shown) and ANY not in one.shown
        if shown and not says(one.shown, text):
            length = one.command.count("\n") + 1
            while lines[one.line - 2 + length].endswith("\\"):
                length += 1
            at = one.line - 1 + length
            told_lines = [line.rstrip() for line in text.rstrip("\n").split("\n")]
            lines[at : at + len(one.shown)] = told_lines
    page.path.write_text("\n".join(lines))
