"""Transcripts: commands of `stage`, and what must come of them.

    command          one a line; `#` starts a comment
    ----             then what happens, up to an empty line

`pytest tests/broker/raft/test_transcripts.py --rewrite-transcripts` writes what happens now; the
diff is the review.
"""

from pathlib import Path

import pytest

from tests.broker.raft.stage import Stage

FOLDER = Path(__file__).parent / "transcripts"
FILES = sorted(FOLDER.glob("*.txt"))


def _play(text: str) -> str:
    """The same commands with what happens now."""
    stage = Stage()
    output: list[str] = []
    for block in text.strip().split("\n\n"):
        script = block.split("\n----")[0].split("\n")
        commands = [line for line in script if line and not line.startswith("#")]
        happened = [line for command in commands for line in stage.run(command)]
        output.append("\n".join([*script, *(["----", *happened] if commands else [])]))
    return "\n\n".join(output) + "\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_transcript(path: Path, pytestconfig: pytest.Config) -> None:
    text = path.read_text()
    played = _play(text)
    if pytestconfig.getoption("--rewrite-transcripts"):
        path.write_text(played)
        return
    assert played.splitlines() == text.splitlines()


def test_there_are_transcripts() -> None:
    assert len(FILES) >= 18
