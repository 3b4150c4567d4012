"""Options of commands that go on until Ctrl-C: reports that are watched, curves."""

from jsctl.commands.toolkit.grammar.spec import Kind, Option

WATCH = Option("watch", "Display the results and update it every (WATCH) seconds", Kind.INTEGER)
PICTURE = (
    Option("svg", "Write a picture of the curves instead of showing them", Kind.FILE),
    Option("png", "The same in pixels; needs the extra `png` of this package", Kind.FILE),
    Option("samples", "How many seconds a picture shows", Kind.INTEGER, default="60"),
)
