"""What consumers do, told as transcripts: see `consumer_transcripts`."""

from pathlib import Path

import pytest

from tests.support import scripts
from tests.support.consumer_play import Play

TRANSCRIPTS = sorted((Path(__file__).parent / "consumer_transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    scripts.check(path, Play().run)
