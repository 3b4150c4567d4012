"""Arguments and options that the groups on streams and consumers share."""

from jsctl.commands.toolkit.grammar.spec import JSON, Argument, Kind, Option

STREAM = Argument("stream", "The stream to act on")
OF_STREAM = Argument("stream", "Stream name")
"""The stream that consumers are on."""
BOTH = (OF_STREAM, Argument("consumer", "Consumer name"))
CONFIG_FILE = Option("config", "JSON file to read configuration from", Kind.INPUT)
PREFERRED = Option("preferred", "Prefer placing the leader on a specific host", metavar="PREFERRED")
ADDING = (
    CONFIG_FILE,
    Option("validate", "Only validates the configuration", Kind.FLAG),
    Option("output", "Save configuration instead of creating", Kind.FILE, metavar="FILE"),
    Option("defaults", "Accept default values for all prompts", Kind.FLAG),
    JSON,
)
BULK = (
    Option("match", "All whose names match a pattern as 'TMP_*', instead of a single one"),
    Option("dry-run", "With --match: only shows the names", Kind.FLAG),
)
WAIT = Option("wait", "Waits until all replicas have caught up, for so long at most", Kind.SPAN)
