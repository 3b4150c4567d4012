"""Where a backup is written until it is whole."""

from pathlib import Path

import pytest

from jsctl.backups.directory import staged


def test_an_interrupt_as_soon_as_there_is_a_folder_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    mkdir = Path.mkdir

    def interrupted(self: Path, mode: int = 0o777, **how: bool) -> None:
        mkdir(self, mode, **how)
        if self != tmp_path:
            made.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), staged(tmp_path / "backup"):
        pytest.fail("nobody gets it")
    assert len(made) == 1 and not [*tmp_path.iterdir()]
