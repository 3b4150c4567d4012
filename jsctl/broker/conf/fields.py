"""How tables turn a tree into dataclasses.

A `Section` is a table of `Field`s: the names an option goes by, the attribute it ends in and
the reader of its value. Readers raise ConfigError; `Reading` collects all errors of a file, so
that an operator sees them at once, and the notes that become warnings at start.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TypeVar
from urllib.parse import urlsplit

from jsctl.broker.compression_options import (
    ACCEPT,
    AUTO,
    BEST,
    BETTER,
    FAST,
    LEVELS,
    NOT_SUPPORTED,
    OFF,
    Compression,
)
from jsctl.broker.conf.tree import ConfigNode, Content
from jsctl.broker.conf.units import duration_ns, host_port, port_number, size_bytes
from jsctl.broker.errors import ConfigError
from jsctl.broker.options import ANY_HOST, SECOND_NS, Options
from jsctl.broker.write_options import WriteTimeout
from jsctl.dataclass import dataclass

SUGGESTION_CUTOFF = 0.6
T = TypeVar("T")


@dataclass(slots=True)
class Reading:
    """One pass over a tree: what went wrong and what the operator should know."""

    errors: list[ConfigError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    strict_errors: list[ConfigError] = field(default_factory=list)
    """What only `-t` refuses."""
    later: list["Callable[[Options], ConfigError | None]"] = field(default_factory=list)
    """Checks of what one block says of another, for when all are read."""

    def no_effect(self, node: ConfigNode, name: str, why: str = "") -> None:
        """Note that an option was taken but changes nothing."""
        reason = f" ({why})" if why else ""
        self.warnings.append(f"{node.place}: {name} has no effect in this server{reason}")


Reader = Callable[[ConfigNode, Reading], object]


@dataclass(frozen=True, slots=True)
class Field:
    """One option. `names` are lower case, the usual one first; `attribute` "" drops the value."""

    names: tuple[str, ...]
    attribute: str
    read: Reader
    inert: bool = False
    """Nothing here asks for the value."""


class Section:
    """A table of fields, looked up by any of their names.

    The attributes in `once`, or all of them with True, may be set once only: a second one would
    silently take away what the first has closed.
    """

    def __init__(self, *fields: Field, once: bool | frozenset[str] = False) -> None:
        self.by_name: dict[str, Field] = {name: item for item in fields for name in item.names}
        self.once = once

    def read(self, node: ConfigNode, reading: Reading, path: str = "") -> dict[str, object]:
        """Attribute -> value of what the map at `node` sets; errors go to `reading`."""
        found: dict[str, object] = {}
        for name, value in mapping(node).items():
            item = self.by_name.get(name.lower())
            if item is None:
                if not value.variable:
                    reading.errors.append(unknown_field(value, name, self.by_name, path))
                continue
            try:
                self._check_once(item, value, found)
                result = item.read(value, reading)
            except ConfigError as error:
                reading.errors.append(named(error, name))
                continue
            if item.attribute:
                found[item.attribute] = result
        return found

    def _check_once(self, item: Field, value: ConfigNode, found: dict[str, object]) -> None:
        guarded = self.once is True or (self.once and item.attribute in self.once)
        if guarded and (value.again or (item.attribute and item.attribute in found)):
            raise value.error("it is given twice", "keep one of them")


Found = dict[str, object]
"""What a section of a block has read, by the names of its fields."""
SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")


def make(kind: Callable[..., T], values: dict[str, object]) -> T:
    """A dataclass of what a section has found; the tables vouch for the types."""
    return kind(**values)


def unknown_field(
    node: ConfigNode, name: str, known: Mapping[str, Field], path: str = ""
) -> ConfigError:
    """The error for a name that no option has, with the nearest that one has."""
    where = f" in {path}" if path else ""
    usual = {item.names[0] for item in known.values()}
    near = difflib.get_close_matches(name.lower(), sorted(usual), n=1, cutoff=SUGGESTION_CUTOFF)
    if name.endswith("{"):
        remedy = f'write a space before "{{" of "{name}"'
    elif near:
        remedy = f'did you mean "{near[0]}"?'
    else:
        remedy = "remove it or correct its name"
    return node.error(f'unknown field "{name}"{where}', remedy)


def named(error: ConfigError, name: str) -> ConfigError:
    """The same error, its reason beginning with the option's name."""
    if error.reason.startswith(("unknown field", f"{name}:")) or ": " in error.reason:
        return error
    return ConfigError(f"{name}: {error.reason}", place=error.place, remedy=error.remedy)


def mapping(node: ConfigNode) -> dict[str, ConfigNode]:
    """The content of a map. Raises ConfigError for another kind."""
    if not isinstance(node.content, dict):
        raise wrong_kind(node, "a map { ... }", "put it in braces")
    return node.content


def wrong_kind(node: ConfigNode, expected: str, remedy: str = "") -> ConfigError:
    """The error for a value of another kind than expected."""
    return node.error(f"expected {expected}, found {node.kind}{shown(node.content)}", remedy)


def shown(content: Content) -> str:
    """A scalar as an error shows it; nothing for maps and arrays."""
    return "" if isinstance(content, dict | list) else f" ({content!r})"


def text(node: ConfigNode, _: Reading) -> str:
    """A string."""
    if not isinstance(node.content, str):
        raise wrong_kind(node, "a string", "put it in quotes")
    return node.content


def path(node: ConfigNode, reading: Reading) -> str:
    """The name of a file, or of a directory."""
    value = text(node, reading)
    if "\0" in value:
        raise node.error(f"{value!r} can be no file", "remove the NUL from its name")
    return value


def filled(why: str) -> Reader:
    """A reader of a file's name that says something; `why` is what an empty one would mean."""

    def read(node: ConfigNode, reading: Reading) -> str:
        value = path(node, reading)
        if not value:
            raise node.error(f"it is empty: {why}", "write one, or remove it")
        return value

    return read


def word(node: ConfigNode, reading: Reading) -> str:
    """A string without white space."""
    value = text(node, reading)
    if any(char.isspace() for char in value):
        raise node.error(f"{value!r} may not contain spaces", "use - or _ instead")
    return value


def boolean(node: ConfigNode, _: Reading) -> bool:
    """true, false, on, off, yes, no."""
    if not isinstance(node.content, bool):
        raise wrong_kind(node, "a boolean", "write true or false without quotes")
    return node.content


def integer(node: ConfigNode, _: Reading) -> int:
    """A whole number, perhaps with a size suffix."""
    if not isinstance(node.content, int) or isinstance(node.content, bool):
        raise wrong_kind(node, "an integer", "write a whole number without quotes")
    return node.content


def in_range(low: int, high: int = (1 << 63) - 1) -> Reader:
    """A reader of integers within bounds, both included."""

    def read(node: ConfigNode, reading: Reading) -> int:
        value = integer(node, reading)
        if not low <= value <= high:
            raise node.error(f"{value} is not within {low} and {high}", "write one that is")
        return value

    return read


count = in_range(0)
"""A number that is not negative."""
int32 = in_range(0, (1 << 31) - 1)


def port(node: ConfigNode, reading: Reading) -> int:
    """0 to 65535, or -1 for any free port."""
    value = integer(node, reading)
    if port_number(str(value)) is None:
        raise node.error(f"{value} is no port", "write 1 to 65535, or -1 for any free port")
    return value


def size(node: ConfigNode, reading: Reading) -> int:
    """Bytes: an integer with or without suffix, or a string such as "1G"."""
    if isinstance(node.content, str):
        found = size_bytes(node.content)
        if found is None:
            raise node.error(f"{node.content!r} is no size", "write for example 1G or 64MB")
        return found
    return integer(node, reading)


def duration(node: ConfigNode, reading: Reading) -> int:
    """Nanoseconds of a duration; a bare number means seconds and is warned of."""
    if isinstance(node.content, str):
        found = duration_ns(node.content)
        if found is None:
            raise node.error(
                f"{node.content!r} is no duration", 'write for example "10s", "2m", "500ms"'
            )
        return found
    seconds = integer(node, reading)
    reason = "should be converted to a duration"
    reading.warnings.append(f"{node.place}: {seconds} {reason}: it was read as {seconds} seconds")
    remedy = f'write "{seconds}s"; an unquoted 1m is one million'
    reading.strict_errors.append(node.error(reason, remedy))
    return seconds * SECOND_NS


def timeout(node: ConfigNode, reading: Reading) -> int:
    """Nanoseconds: seconds as a number (fractions allowed), or a duration."""
    if isinstance(node.content, int | float) and not isinstance(node.content, bool):
        return round(node.content * SECOND_NS)
    return duration(node, reading)


def texts(node: ConfigNode, reading: Reading) -> tuple[str, ...]:
    """A string, or an array of strings."""
    if isinstance(node.content, list):
        return tuple(text(item, reading) for item in node.content)
    if isinstance(node.content, str):
        return (node.content,)
    raise wrong_kind(node, "a string or an array of strings", "put it in quotes")


def array(node: ConfigNode) -> list[ConfigNode]:
    """The elements of an array. Raises ConfigError for another kind."""
    if not isinstance(node.content, list):
        raise wrong_kind(node, "an array [ ... ]", "put it in brackets")
    return node.content


def listen(node: ConfigNode, _: Reading) -> tuple[str, int]:
    """`host:port`, or a port on all addresses."""
    content = node.content
    if isinstance(content, int) and not isinstance(content, bool):
        content = f":{content}"
    if not isinstance(content, str):
        raise wrong_kind(node, "host:port or a port")
    found = host_port(content)
    if found is None:
        raise node.error(f"{content!r} is no address to listen on", "write host:port")
    return (found[0] or ANY_HOST, found[1])


def one_of(*values: str) -> Reader:
    """A reader of one of some words, in any case."""

    def read(node: ConfigNode, reading: Reading) -> str:
        value = text(node, reading).lower()
        if value not in values:
            raise node.error(f"{value!r} is not known", f"write one of {', '.join(values)}")
        return value

    return read


def positive(default_ns: int) -> Reader:
    """A reader of a duration; what is not above zero is the default, as in nats-server."""

    def read(node: ConfigNode, reading: Reading) -> int:
        value = duration(node, reading)
        return value if value > 0 else default_ns

    return read


def unless_zero(read: Reader, default: int) -> Reader:
    """A reader as `read`, where 0 is the default, as in nats-server."""
    return lambda node, reading: read(node, reading) or default


def write_timeout(node: ConfigNode, reading: Reading) -> WriteTimeout:
    """default, close, retry."""
    value = text(node, reading)
    for policy in WriteTimeout:
        if value == policy.value:
            return policy
    raise node.error(f"{value!r} is not known", "write default, close or retry")


def ignored(*names: str, why: str = "") -> Field:
    """An option that is taken as it is and warned of: it changes nothing here."""

    def read(node: ConfigNode, reading: Reading) -> None:
        reading.no_effect(node, f'"{names[0]}"', why)

    return Field(names, "", read)


def inert(field: Field, why: str = "") -> Field:
    """An option that is kept and compared as others, but changes nothing here, which is said."""

    def read(node: ConfigNode, reading: Reading) -> object:
        value = field.read(node, reading)
        reading.no_effect(node, f'"{field.names[0]}"', why)
        return value

    return Field(field.names, field.attribute, read, inert=True)


def unused(*names: str, read: Reader, why: str) -> Field:
    """As `ignored`, but what is no such value is refused."""

    def check(node: ConfigNode, reading: Reading) -> None:
        read(node, reading)
        reading.no_effect(node, f'"{names[0]}"', why)

    return Field(names, "", check)


def quiet(*names: str) -> Field:
    """An option that is taken as it is: what it asks for is so anyway, or needs no effect."""
    return Field(names, "", lambda node, reading: None)


def rejected(*names: str, why: str, remedy: str) -> Field:
    """An option that must not be passed over: ignoring it would open what it closes."""

    def read(node: ConfigNode, reading: Reading) -> None:
        del reading
        raise node.error(f"{names[0]} is not supported: {why}", remedy)

    return Field(names, "", read)


def unless_off(*names: str, why: str, remedy: str) -> Field:
    """As `rejected`, but it may be there and say that it is off."""

    def read(node: ConfigNode, reading: Reading) -> None:
        del reading
        if node.content is not False and node.content not in ([], {}):
            raise node.error(f"{names[0]} is not supported: {why}", remedy)

    return Field(names, "", read)


def not_negative(node: ConfigNode, reading: Reading) -> int:
    """A duration that is no less than nothing."""
    value = duration(node, reading)
    if value < 0:
        raise node.error("must be a positive value", 'write for example "10s"')
    return value


def remote_url(node: ConfigNode, reading: Reading) -> str:
    """Where another server is."""
    value = text(node, reading).strip()
    try:
        host = urlsplit(value).netloc
        urlsplit(value).port  # noqa: B018 (raises for what is none)
    except ValueError:
        host = " "
    plain = ":" in value.partition("/")[0] and not SCHEME.match(value)
    if plain or any(char.isspace() or not char.isprintable() for char in host):
        raise node.error("error parsing url", "write for example nats://host:7422")
    return value


def compression(on: str) -> Reader:
    """A reader of how, or whether, what is sent is made smaller; `on` is what yes means."""

    def read(node: ConfigNode, reading: Reading) -> Compression:
        if isinstance(node.content, dict):
            found = COMPRESSION.read(node, reading, "compression")
            mode = str(found.get("mode", on))
            given = found.get("thresholds")
        else:
            said = node.content
            mode = (on if said else OFF) if isinstance(said, bool) else str(_mode(node, reading))
            given = None
        mode = on if mode in ON else MODES[mode]
        if mode != AUTO or not isinstance(given, tuple) or not given:
            return Compression(mode)
        return Compression(mode, _thresholds(node, given))

    return read


def _thresholds(node: ConfigNode, given: tuple[int, ...]) -> tuple[int, ...]:
    """Rising round trips; zeros stand for levels that are left out."""
    highest = 0
    for one in given:
        if one and one < highest:
            raise node.error("RTT thresholds should be in ascending order", "sort them")
        highest = max(highest, one)
    while given and not given[-1]:
        given = given[:-1]
    if not given:
        raise node.error("s2_auto requires at least one RTT threshold", 'write for example "10ms"')
    if len(given) > len(LEVELS):
        raise node.error(
            f"s2_auto should have no more than {len(LEVELS)} RTT thresholds", "remove some"
        )
    return given


def _round_trips(node: ConfigNode, reading: Reading) -> tuple[int, ...]:
    return tuple(max(duration(item, reading), 0) for item in array(node))


ON = ("on", "enabled", "true")
MODES = {
    "off": OFF,
    "disabled": OFF,
    "false": OFF,
    "not supported": NOT_SUPPORTED,
    "not_supported": NOT_SUPPORTED,
    "accept": ACCEPT,
    "auto": AUTO,
    "s2_auto": AUTO,
    "fast": FAST,
    "s2_fast": FAST,
    "better": BETTER,
    "s2_better": BETTER,
    "best": BEST,
    "s2_best": BEST,
}
_mode = one_of(*MODES, *ON)
COMPRESSION = Section(
    Field(("mode",), "mode", _mode),
    Field(("rtt_thresholds", "thresholds", "rtts", "rtt"), "thresholds", _round_trips),
)
