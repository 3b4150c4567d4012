"""Every table is run: a folder of lines has a module, so that workers share the work."""

from pathlib import Path

from tests.commands.parity.conftest import LINES, SEVERAL, STORIES, table_of


def test_every_folder_of_lines_has_a_module_and_every_story_a_name_of_its_own() -> None:
    folders = {path.name for path in LINES.iterdir()}
    modules = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    assert folders == modules - {"folders"}
    several = [path.stem for folder in SEVERAL for path in LINES.glob(f"{folder}/*.txt")]
    stories = {*STORIES, *several}
    assert sorted(path.stem for path in LINES.glob("*/*.txt")) == sorted(stories)
    assert all(table_of(story).parent.name in folders for story in stories)
