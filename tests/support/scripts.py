"""Text transcripts: commands, then what they are expected to tell.

    command
    command
    ----
    expected line

Blocks are separated by blank lines, lines with `#` are comments. With `REWRITE=1` in the
environment the expectations are written anew, to be read as a diff.
"""

import os
from collections.abc import Callable
from pathlib import Path


def check(path: Path, run: Callable[[str], str]) -> None:
    """Run the blocks of a file in order and compare what each one tells."""
    made = []
    for block in path.read_text().rstrip("\n").split("\n\n"):
        lines = block.split("\n")
        comments = [line for line in lines if line.startswith("#")]
        script, _, _ = "\n".join(lines[len(comments) :]).partition("\n----")
        told = run(script).rstrip("\n") if script else ""
        parts = comments + ([script, "----"] if script else []) + ([told] if told else [])
        made.append("\n".join(parts))
    text = "\n\n".join(made) + "\n"
    if os.environ.get("REWRITE"):
        path.write_text(text)
    assert text == path.read_text()
