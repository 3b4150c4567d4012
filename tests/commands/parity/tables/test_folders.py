"""Every table is run: a folder of lines has a module, so that workers share the work."""

from pathlib import Path

from tests.commands.parity.conftest import LINES, STORIES, table_of


def test_every_folder_of_lines_has_a_module_and_every_story_a_name_of_its_own() -> None:
    folders = {path.name for path in LINES.iterdir()}
    modules = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    assert folders == modules - {"folders"}
    assert sorted(path.stem for path in LINES.glob("*/*.txt")) == sorted(set(STORIES))
    assert all(table_of(story).parent.name in folders for story in STORIES)
