"""Text of a configuration file -> tree: maps, arrays, variables, includes.

The language is a superset of JSON. Files and the environment are reached through the arguments,
so the parser itself touches neither. Theory: recursive descent; a stack of the maps that are open
gives variables their scope (innermost first, only what was parsed so far, then the environment).
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from jsctl.broker.conf.scan import BLANKS, BOOLEANS, BREAKS, END, SEPARATORS, SPACES, Scanner
from jsctl.broker.conf.tree import ConfigNode, Content, Place
from jsctl.broker.errors import ConfigError

NESTING_MAX = 64
INCLUDE_DEPTH_MAX = 16
FILE_CHARACTERS_MAX = 64 << 20
BCRYPT_PREFIX = "2a$"
ENVIRONMENT_KEY = "pk"

ReadFile = Callable[[str], str]


def read_file(path: str) -> str:
    """The text of a configuration file. Raises ConfigError, which names the file.

    Bytes that are no text are kept as Python marks them: a comment may have some.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8", "surrogateescape")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"cannot be read: {reason}", place=path) from error
    if len(text) > FILE_CHARACTERS_MAX:
        raise ConfigError("is larger than 64 MiB", place=path, remedy="split it by include")
    return text


def parse(
    text: str, file: str, environment: Mapping[str, str], read: ReadFile = read_file
) -> ConfigNode:
    """The tree of one file and all that it includes. Raises ConfigError, nothing else."""
    return _Parser(text, file, environment, read, (), 0).file_map()


class _Parser:
    def __init__(
        self,
        text: str,
        file: str,
        environment: Mapping[str, str],
        read: ReadFile,
        expanding: tuple[str, ...],
        depth: int,
        nesting: int = 0,
    ) -> None:
        self._scanner = Scanner(text, file)
        self._file = file
        self._environment = environment
        self._read = read
        self._expanding = expanding
        """Environment variables whose text is being parsed right now: a cycle shows here."""
        self._depth = depth
        self._maps: list[dict[str, ConfigNode]] = []
        self._nesting = nesting
        """Levels that are open, those around what is included among them."""

    def file_map(self) -> ConfigNode:
        scanner = self._scanner
        root: dict[str, ConfigNode] = {}
        self._maps.append(root)
        braces = 0
        while True:
            scanner.skip(SPACES)
            char = scanner.peek()
            if char == END:
                break
            if char == "{" and not (root and not braces):
                scanner.position += 1
                braces += 1
            elif char == "}" and (
                braces
                or scanner.text[scanner.position + 1 :].isspace()
                or scanner.position + 1 == len(scanner.text)
            ):
                scanner.position += 1
                braces = max(0, braces - 1)
                scanner.skip_blank(";,")
            else:
                self._pair(root, top=True)
                self._pair_end()
        if braces:
            raise scanner.error("the file ends before '}'", "close the outer '{'")
        return ConfigNode(root, Place(self._file, 1, 1))

    def _pair(self, target: dict[str, ConfigNode], *, top: bool) -> None:
        scanner = self._scanner
        start = scanner.position
        place = scanner.place()
        quoted = scanner.peek() in ("'", '"')
        key = scanner.key()
        if key.lower() == "include" and not quoted and scanner.peek().isspace():
            self._include(target)
            return
        scanner.skip_blank(SPACES)
        separated = scanner.peek() != END and scanner.peek() in SEPARATORS
        if separated:
            scanner.position += 1
            scanner.skip_blank(BLANKS if top else SPACES)
        if separated and top and scanner.peek() and scanner.peek() in BREAKS:
            raise scanner.error(
                f"{key!r} has no value: found a new line", "write it on the line of its key"
            )
        if scanner.peek() == END:
            remedy = f"put a space before '{{' of {key!r}" if key.endswith("{") else "write a value"
            raise scanner.error(f"{key!r} has no value: found the end of the file", remedy, start)
        target[key] = ConfigNode(self._value(), place, again=key in target)

    def _pair_end(self) -> None:
        """After a pair: a line break, `,` or `;`, or what closes the map, which is left."""
        scanner = self._scanner
        scanner.skip(BLANKS)
        char = scanner.peek()
        if char == END or char in BREAKS or char == "}":
            return
        if char not in ",;":
            raise scanner.error(
                f"expected a new line, ',' or ';' after a value, but got {char!r}",
                "quote the value if that belongs to it",
            )
        scanner.position += 1

    def _value(self) -> Content:
        scanner = self._scanner
        char = scanner.peek()
        if char == "{":
            return self._nested(self._map)
        if char == "[":
            return self._nested(self._array)
        if char in ("'", '"'):
            return scanner.quoted()
        if char == "(":
            return scanner.block()
        if char == "-" or char.isdecimal():
            return scanner.number()
        if char == ".":
            raise scanner.error("a number must begin with a digit", "write 0.5, or quote it")
        return self._word()

    def _nested(self, read: Callable[[], Content]) -> Content:
        self._check_nesting()
        self._nesting += 1
        content = read()
        self._nesting -= 1
        return content

    def _check_nesting(self, position: int | None = None) -> None:
        if self._nesting >= NESTING_MAX:
            what = f"more than {NESTING_MAX} levels of maps, arrays and variables"
            raise self._scanner.error(what, "", position)

    def _map(self) -> Content:
        scanner = self._scanner
        start = scanner.position
        scanner.position += 1
        content: dict[str, ConfigNode] = {}
        self._maps.append(content)
        while True:
            scanner.skip(SPACES)
            char = scanner.peek()
            if char == END:
                raise scanner.error("a map is not closed", "close it by '}'", start)
            if char == "}":
                break
            if char == "]":
                raise scanner.error("found ']' in a map", "close the map by '}'")
            self._pair(content, top=False)
            self._pair_end()
        scanner.position += 1
        self._maps.pop()
        return content

    def _array(self) -> Content:
        scanner = self._scanner
        start = scanner.position
        scanner.position += 1
        content: list[ConfigNode] = []
        while True:
            scanner.skip(SPACES)
            char = scanner.peek()
            if char == END:
                raise scanner.error("an array is not closed", "close it by ']'", start)
            if char == "]":
                break
            if char == ",":
                raise scanner.error("found ',' where a value should be", "remove it")
            place = scanner.place()
            content.append(ConfigNode(self._value(), place))
            self._array_value_end()
        scanner.position += 1
        return content

    def _array_value_end(self) -> None:
        scanner = self._scanner
        scanner.skip(BLANKS)
        char = scanner.peek()
        if char == END or char == "]" or char in BREAKS:
            return
        if char != ",":
            raise scanner.error(f"expected ',' or ']' in an array, but got {char!r}")
        scanner.position += 1

    def _word(self) -> Content:
        start = self._scanner.position
        word, escaped = self._scanner.bare()
        if escaped:
            return word
        if word.lower() in BOOLEANS:
            return BOOLEANS[word.lower()]
        if word.startswith("$"):
            return self._variable(word[1:], start)
        return word

    def _variable(self, name: str, start: int) -> Content:
        if name.startswith(BCRYPT_PREFIX):
            return "$" + name
        for scope in reversed(self._maps):
            if (found := scope.get(name)) is not None:
                found.variable = True
                return found.content
        place = self._scanner.place(start)
        what = f"variable reference for '{name}' on line {place.line}"
        if name in self._expanding:
            raise self._scanner.error(f"{what} refers to itself", "", start)
        text = self._environment.get(name)
        if text is None:
            raise self._scanner.error(
                f"{what} can not be found",
                f"set {name} above it or in the environment, or quote the value",
                start,
            )
        return self._environment_value(name, text, start)

    def _environment_value(self, name: str, text: str, start: int) -> Content:
        if not text.strip():
            return ""
        if any("\ud800" <= char <= "\udfff" for char in text):
            # Python shows bytes that are no text this way; nobody could give them as a password.
            raise self._scanner.error(f"environment variable {name} is no text", "", start)
        self._check_nesting(start)
        inner = _Parser(
            f"{ENVIRONMENT_KEY}={text}",
            f"${name}",
            self._environment,
            self._read,
            (*self._expanding, name),
            self._depth,
            self._nesting + 1,
        )
        root = inner.file_map().content
        if isinstance(root, dict) and ENVIRONMENT_KEY in root:
            return root[ENVIRONMENT_KEY].content
        raise self._scanner.error(f"environment variable {name} has no value", "", start)

    def _include(self, target: dict[str, ConfigNode]) -> None:
        scanner = self._scanner
        scanner.skip_blank(BLANKS)
        start = scanner.position
        char = scanner.peek()
        if char in ("'", '"'):
            name = scanner.literal(char, "a file name")
        elif not char or char in BREAKS or char in "[{(\\-" or char.isdecimal():
            raise scanner.error("include has no file name", 'write include "file"')
        else:
            name = scanner.bare()[0]
        if self._depth >= INCLUDE_DEPTH_MAX:
            raise scanner.error(
                f"more than {INCLUDE_DEPTH_MAX} files include each other", "", start
            )
        path = self._included_path(name)
        try:
            text = self._read(path)
        except ConfigError as error:
            raise scanner.error(f"include file {name!r}: {error.reason}", "", start) from error
        depth, nesting = self._depth + 1, self._nesting
        inner = _Parser(text, path, self._environment, self._read, (), depth, nesting)
        content = inner.file_map().content
        assert isinstance(content, dict)
        for key, node in content.items():
            node.again = node.again or key in target
            target[key] = node

    def _included_path(self, name: str) -> str:
        """Below the including file's directory; an absolute name may also be meant as such."""
        below = Path(self._file).parent / name.lstrip("/")
        if name.startswith("/") and not below.is_file():
            return name
        return str(below)
