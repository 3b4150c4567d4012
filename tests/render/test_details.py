"""Info screens: rows that line up, sections, and sentences in their place."""

from jsctl.render.details import FACT_COLUMNS, Details
from jsctl.render.formats import render_rows


def test_a_line_stands_in_the_place_of_rows_and_keeps_its_section() -> None:
    screen = Details("Head")
    screen.row("Name", "x")
    screen.section("Permissions", parent=True)
    screen.section("Publish", indent=2)
    screen.text("No permissions defined")
    screen.section("Subscribe", indent=2)
    screen.row("Allow", ">")
    assert screen.render() == (
        "Head\n\n"
        "   Name: x\n\n"
        "Permissions:\n\n"
        "  Publish:\n\n"
        "   No permissions defined\n\n"
        "  Subscribe:\n\n"
        "    Allow: >\n"
    )


def test_lines_are_rows_of_a_table() -> None:
    screen = Details("Head")
    screen.row("Name", "x")
    screen.section("Publish")
    screen.rows("Allow", ("a,b", "c"))
    shown = render_rows(screen.facts(), FACT_COLUMNS, "csv")
    assert shown == 'section,name,value\n,Name,x\nPublish,Allow,"a,b\nc"'


def test_a_line_is_no_row_for_machines() -> None:
    screen = Details("")
    screen.section("Publish")
    screen.text("nothing: at all")
    screen.row("Allow", ">")
    assert screen.sections() == {"Publish": {"Allow": ">"}}
    assert "\n nothing: at all\n" in screen.render()


def test_a_lead_stands_right_above_its_rows() -> None:
    screen = Details("")
    screen.section("Mappings", parent=True)
    screen.lead("a.>", indent=2)
    screen.row("Destination", "b.>")
    screen.lead("c", indent=2)
    screen.row("Destination", "d")
    assert screen.render() == (
        "Mappings:\n\n   a.>\n    Destination: b.>\n   c\n    Destination: d\n"
    )
    assert screen.sections() == {"a.>": {"Destination": "b.>"}, "c": {"Destination": "d"}}


def test_what_servers_name_moves_no_cursor() -> None:
    screen = Details("a\x1bb")
    screen.section("c\x1bd")
    screen.row("e\x1b\nf", "g\x1bh")
    assert screen.render() == "a\\x1bb\n\nc\\x1bd:\n\n  e\\x1b\\nf: g\\x1bh\n"
