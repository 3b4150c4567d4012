"""From words to a template."""

from collections.abc import Callable, Collection, Mapping

from jsctl.api.strict import quoted
from jsctl.commands.toolkit.templating.lexing import LEFT, RIGHT, Token, Word, words_of
from jsctl.commands.toolkit.templating.nodes import (
    Action,
    Body,
    Branch,
    Call,
    Chain,
    Command,
    Dot,
    Field,
    Function,
    Jump,
    Literal,
    Node,
    Operand,
    Pipeline,
    Text,
    Variable,
)
from jsctl.commands.toolkit.templating.numbers import number_of
from jsctl.commands.toolkit.templating.quoting import unquoted


class TemplateError(Exception):
    """Of a template that cannot be read or run, in the words of Go's library."""


class _End(str):
    """`end` or `else`, behind a list of nodes."""

    __slots__ = ()


def parse(
    name: str,
    text: str,
    functions: Collection[str],
    left: str = LEFT,
    right: str = RIGHT,
) -> Mapping[str, Body]:
    """The bodies of a template and of those that it defines, by name. Raises TemplateError."""
    parser = _Parser(name, words_of(text, left, right), functions)
    try:
        parser.whole()
    except RecursionError:
        raise TemplateError(f"template: {name}:1: max expression depth exceeded") from None
    return parser.bodies


class _Parser:
    """`next` and friends keep three words in hand, of which the first says where errors are."""

    def __init__(self, name: str, words: list[Word], functions: Collection[str]) -> None:
        self.name, self.functions = name, functions
        self.bodies: dict[str, Body] = {}
        self._words = iter(words)
        self._last = words[-1]
        self._held: list[Word] = [words[-1]] * 3
        self._count = 0
        self._variables = ["$"]
        self._ranges = 0
        self._action_line = 0
        self._shown: dict[Token, Callable[[Word], Operand]] = {
            Token.IDENTIFIER: self._function,
            Token.DOT: lambda word: Dot(word.at),
            Token.NIL: lambda word: Literal(word.at, "nil", None, "nil"),
            Token.VARIABLE: self._variable,
            Token.FIELD: lambda word: Field(word.at, (word.text[1:],)),
            Token.BOOL: lambda word: Literal(word.at, word.text, word.text == "true", "bool"),
            Token.CHARACTER: self._number,
            Token.NUMBER: self._number,
            Token.COMPLEX: self._number,
            Token.STRING: self._string,
            Token.RAW_STRING: self._string,
            Token.OPEN: self._parenthesized,
        }

    def next(self) -> Word:
        if self._count:
            self._count -= 1
        else:
            self._held[0] = next(self._words, self._last)
        return self._held[self._count]

    def back(self, *before: Word) -> None:
        """One word, and those that were read before it, the earliest first."""
        for at, word in enumerate(reversed(before), 1):
            self._held[at] = word
        self._count = len(before) + 1 if before else self._count + 1

    def peek(self) -> Word:
        if not self._count:
            self._held[0] = next(self._words, self._last)
            self._count = 1
        return self._held[self._count - 1]

    def next_word(self) -> Word:
        """Past spaces."""
        while (word := self.next()).kind is Token.SPACE:
            pass
        return word

    def peek_word(self) -> Word:
        word = self.next_word()
        self.back()
        return word

    def wrong(self, reason: str) -> TemplateError:
        return TemplateError(f"template: {self.name}:{self._held[0].line}: {reason}")

    def unexpected(self, word: Word, where: str) -> TemplateError:
        if word.kind is not Token.ERROR:
            return self.wrong(f"unexpected {word} in {where}")
        extra = ""
        if self._action_line not in (0, word.line):
            extra = f" in action started at {self.name}:{self._action_line}"
            if word.text.endswith(" action"):
                extra = extra.removeprefix(" in action")
        return self.wrong(f"{word}{extra}")

    def expect(self, kinds: Collection[Token], where: str) -> Word:
        word = self.next_word()
        if word.kind not in kinds:
            raise self.unexpected(word, where)
        return word

    def whole(self) -> None:
        nodes: list[Node] = []
        while self.peek().kind is not Token.END:
            if self.peek().kind is Token.LEFT:
                left = self.next()
                word = self.next_word()
                if word.kind is Token.KEYWORD and word.text == "define":
                    self._definition()
                    continue
                self.back(left)
            node = self._node()
            if isinstance(node, _End):
                raise self.wrong(f"unexpected {node}")
            nodes.append(node)
        self._add(self.name, nodes)

    def _add(self, name: str, body: Body) -> None:
        if not _empty(self.bodies.get(name, ())):
            if not _empty(body):
                raise self.wrong(f"template: multiple definition of template {quoted(name)}")
            return
        self.bodies[name] = body

    def _definition(self) -> None:
        word = self.expect((Token.STRING, Token.RAW_STRING), "define clause")
        name = self._unquoted(word)
        self.expect((Token.RIGHT,), "define clause")
        self._named(name, "define clause")

    def _named(self, name: str, where: str) -> None:
        """Up to its end, with variables of its own."""
        kept, self._variables = self._variables, ["$"]
        ranges, self._ranges = self._ranges, 0
        body, end = self._body()
        if end != "{{end}}":
            raise self.wrong(f"unexpected {end} in {where}")
        self._variables, self._ranges = kept, ranges
        self._add(name, body)

    def _body(self) -> tuple[list[Node], _End]:
        """Up to `end` or `else`."""
        nodes: list[Node] = []
        while self.peek_word().kind is not Token.END:
            node = self._node()
            if isinstance(node, _End):
                return nodes, node
            nodes.append(node)
        raise self.wrong("unexpected EOF")

    def _node(self) -> "Node | _End":
        word = self.next_word()
        if word.kind is Token.TEXT:
            return Text(word.at, word.text)
        if word.kind is not Token.LEFT:
            raise self.unexpected(word, "input")
        self._action_line = word.line
        node = self._action()
        self._action_line = 0
        return node

    def _action(self) -> "Node | _End":
        word = self.next_word()
        if word.kind is Token.KEYWORD and word.text != "define":
            return _CONTROLS[word.text](self, word)
        self.back()
        at = self.peek().at
        return Action(at, self._pipeline("command", Token.RIGHT))

    def jump(self, word: Word) -> Jump:
        following = self.next_word()
        if following.kind is not Token.RIGHT:
            raise self.unexpected(following, f"{{{{{word.text}}}}}")
        if not self._ranges:
            raise self.wrong(f"{{{{{word.text}}}}} outside {{{{range}}}}")
        return Jump(word.at, word.text)

    def end(self, _word: Word) -> _End:
        self.expect((Token.RIGHT,), "end")
        return _End("{{end}}")

    def otherwise(self, _word: Word) -> _End:
        following = self.peek_word()
        if following.kind is not Token.KEYWORD or following.text not in ("if", "with"):
            self.expect((Token.RIGHT,), "else")
        return _End("{{else}}")

    def branch(self, word: Word) -> Branch:
        """`if`, `with`, `range`, up to the end."""
        kind, before = word.text, len(self._variables)
        pipeline = self._pipeline(kind, Token.RIGHT)
        self._ranges += kind == "range"
        body, end = self._body()
        self._ranges -= kind == "range"
        other: list[Node] | None = None
        if end == "{{else}}":
            other = self._else(kind)
        del self._variables[before:]
        return Branch(pipeline.at, kind, pipeline, body, other)

    def _else(self, kind: str) -> list[Node]:
        following = self.peek()
        if following.kind is Token.KEYWORD and following.text == kind != "range":
            return [self.branch(self.next())]
        body, end = self._body()
        if end != "{{end}}":
            raise self.wrong(f"expected end; found {end}")
        return body

    def call(self, word: Word) -> Call:
        """`template` and `block`, which defines it too."""
        block = word.text == "block"
        where = f"{word.text} clause"
        named = self.next_word()
        if named.kind not in (Token.STRING, Token.RAW_STRING):
            raise self.unexpected(named, where)
        name = self._unquoted(named)
        pipeline = None
        if block:
            pipeline = self._pipeline(where, Token.RIGHT)
            self._named(name, where)
        elif self.next_word().kind is not Token.RIGHT:
            self.back()
            pipeline = self._pipeline(where, Token.RIGHT)
        return Call(named.at, name, pipeline)

    def _pipeline(self, where: str, end: Token) -> Pipeline:
        at = self.peek_word().at
        declared, assigns = self._declarations(where)
        commands: list[Command] = []
        while (word := self.next_word()).kind is not end:
            if word.kind not in self._shown:
                raise self.unexpected(word, where)
            self.back()
            commands.append(self._command())
        if not commands:
            raise self.wrong(f"missing value for {where}")
        for stage, command in enumerate(commands[1:], 2):
            if isinstance(command.words[0], Literal | Dot):
                raise self.wrong(f"non executable command in pipeline stage {stage}")
        return Pipeline(at, tuple(commands), tuple(declared), assigns)

    def _declarations(self, where: str) -> tuple[list[Variable], bool]:
        declared: list[Variable] = []
        while (variable := self.peek_word()).kind is Token.VARIABLE:
            self.next()
            adjacent = self.peek()
            following = self.peek_word()
            comma = following.kind is Token.OTHER and following.text == ","
            if following.kind not in (Token.ASSIGN, Token.DECLARE) and not comma:
                self.back(*((variable, adjacent) if adjacent.kind is Token.SPACE else (variable,)))
                break
            self.next_word()
            declared.append(Variable(variable.at, variable.text))
            self._variables.append(variable.text)
            if not comma:
                return declared, following.kind is Token.ASSIGN
            if where != "range" or len(declared) > 1:
                raise self.wrong(f"too many declarations in {where}")
            if self.peek_word().kind not in (Token.VARIABLE, Token.RIGHT, Token.CLOSE):
                raise self.wrong("range can only initialize variables")
        return declared, False

    def _command(self) -> Command:
        at = self.peek_word().at
        words: list[Operand] = []
        while True:
            self.peek_word()
            operand = self._operand()
            if operand is not None:
                words.append(operand)
            word = self.next()
            if word.kind is Token.SPACE:
                continue
            if word.kind in (Token.RIGHT, Token.CLOSE):
                self.back()
            elif word.kind is not Token.PIPE:
                raise self.unexpected(word, "operand")
            break
        if not words:
            raise self.wrong("empty command")
        return Command(at, tuple(words))

    def _operand(self) -> Operand | None:
        """A term and its fields; None before what is none."""
        word = self.next_word()
        make = self._shown.get(word.kind)
        if make is None:
            self.back()
            return None
        term = make(word)
        at, names = self.peek().at, list[str]()
        while self.peek().kind is Token.FIELD:
            names.append(self.next().text[1:])
        if not names:
            return term
        if isinstance(term, Field):
            return Field(at, (*term.names, *names))
        if isinstance(term, Variable):
            return Variable(at, term.name, (*term.names, *names))
        if isinstance(term, Literal | Dot):
            raise self.wrong(f"unexpected . after term {quoted(str(term))}")
        return Chain(at, term, tuple(names))

    def _function(self, word: Word) -> Function:
        if word.text not in self.functions:
            raise self.wrong(f"function {quoted(word.text)} not defined")
        return Function(word.at, word.text)

    def _variable(self, word: Word) -> Variable:
        if word.text not in self._variables:
            raise self.wrong(f"undefined variable {quoted(word.text)}")
        return Variable(word.at, word.text)

    def _number(self, word: Word) -> Literal:
        try:
            return Literal(word.at, word.text, number_of(word.text), "number")
        except ValueError as error:
            raise self.wrong(str(error)) from None

    def _unquoted(self, word: Word) -> str:
        try:
            return unquoted(word.text)
        except ValueError as error:
            raise self.wrong(str(error)) from None

    def _string(self, word: Word) -> Literal:
        return Literal(word.at, word.text, self._unquoted(word), "string")

    def _parenthesized(self, _word: Word) -> Pipeline:
        return self._pipeline("parenthesized pipeline", Token.CLOSE)


def _empty(body: Body) -> bool:
    return all(isinstance(node, Text) and not node.text.strip() for node in body)


_CONTROLS: Mapping[str, Callable[[_Parser, Word], "Node | _End"]] = {
    "block": _Parser.call,
    "template": _Parser.call,
    "break": _Parser.jump,
    "continue": _Parser.jump,
    "else": _Parser.otherwise,
    "end": _Parser.end,
    "if": _Parser.branch,
    "range": _Parser.branch,
    "with": _Parser.branch,
}
