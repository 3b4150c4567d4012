"""The questions of a bundle, and what their answers come to."""

import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, ip_address
from typing import NamedTuple

from jsctl.commands.server.bundles.library import FUNCTIONS
from jsctl.commands.server.bundles.limits import CHECK_S, new_budget, within
from jsctl.commands.server.bundles.source import is_true
from jsctl.commands.toolkit.content.expressions import compiled
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.templating.numbers import INT64_MAX, INT64_MIN
from jsctl.commands.toolkit.templating.running import Template
from jsctl.errors import JsctlError, NeedsConfirmation, UsageError

QUESTIONS_MAX = 500
DEPTH_MAX = 10
ENTRIES_MAX = 1000
ARRAY, OBJECT, ABSENT = "array", "object", "absent"
_TYPES = ("string", "bool", "integer", "float", "password", OBJECT, ARRAY, "")
_NO_FLAG = {"": False, "0": False, "f": False, "false": False, "1": True, "t": True, "true": True}
_PAIR = re.compile(r"\{([a-zA-Z]{1,20})\}([^{}]*)\{/\1\}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

Answers = dict[str, object]


class Property(NamedTuple):
    """A question, or several under one name; `path` is what `--set` calls it."""

    name: str
    path: str
    description: str
    help: str
    if_empty: str
    type: str
    condition: str
    validation: str
    required: bool
    default: str
    choices: tuple[str, ...]
    properties: "tuple[Property, ...]"


def properties_of(form: object) -> tuple[Property, ...]:
    """Raises JsctlError."""
    count = 0

    def read(raw: object, above: str, depth: int) -> tuple[Property, ...]:
        nonlocal count
        if not raw:
            return ()
        if not isinstance(raw, list) or depth > DEPTH_MAX:
            raise UsageError(f"form.yaml: properties are a list, at most {DEPTH_MAX} deep")
        found: list[Property] = []
        for one in raw:
            count += 1
            if count > QUESTIONS_MAX:
                raise UsageError(f"form.yaml: more than {QUESTIONS_MAX} questions")
            if not isinstance(one, Mapping):
                raise UsageError("form.yaml: a property is no object")
            found.append(_property(one, above, lambda its, name: read(its, name, depth + 1)))
        return tuple(found)

    properties = read(form.get("properties") if isinstance(form, Mapping) else None, "", 0)
    if not properties:
        raise UsageError("no properties defined")
    return properties


def _property(
    raw: Mapping[str, object], above: str, read: Callable[[object, str], tuple[Property, ...]]
) -> Property:
    def text(key: str) -> str:
        value = raw.get(key) or ""
        if not isinstance(value, str):
            raise UsageError(f"form.yaml: {key} is no text")
        return value

    choices = raw.get("enum") or []
    if not isinstance(choices, list) or not all(isinstance(one, str) for one in choices):
        raise UsageError("form.yaml: enum is no list of texts")
    name, kind = text("name"), text("type")
    if kind not in _TYPES:
        raise UsageError(f"unsupported property type {kind!r}")
    path = f"{above}{name}"
    return Property(
        *(name, path, text("description"), text("help"), text("empty"), kind),
        *(text("conditional"), text("validation"), is_true(raw.get("required")), text("default")),
        *(tuple(choices), read(raw.get("properties"), f"{path}.")),
    )


def rendered(text: str, data: Mapping[str, object], name: str) -> str:
    """A text of a bundle for a person: filled in, without colours and control characters."""
    with within(CHECK_S):
        made = Template(name, text, FUNCTIONS).run(data, budget=new_budget())
        before = ""
        while before != made:
            before, made = made, _PAIR.sub(r"\2", made)
        return _CONTROL.sub("", made)


def _holds(expression: str, environment: Mapping[str, object]) -> bool:
    """Of a condition or a validation. Raises JsctlError."""
    with within(CHECK_S):
        return compiled(expression, CHECKS)(environment)


class Form:
    """One form being filled in: by a person, or by `--set` and `--defaults`."""

    def __init__(self, call: Call, raw: object, data: Mapping[str, object]) -> None:
        self._call, self._data = call, data
        self._properties = properties_of(raw)
        description = raw.get("description") if isinstance(raw, Mapping) else ""
        self._description = description if isinstance(description, str) else ""
        self._given = call.mapping("set")
        self._silent = call.flag("defaults")
        self._root: Answers = {}

    def filled(self) -> Answers:
        """Raises JsctlError."""
        known = set(_paths(self._properties))
        unknown = sorted(set(self._given) - known)
        if unknown:
            told = ", ".join(sorted(known))
            raise UsageError(f"--set {unknown[0]}: there is no such question; known: {told}")
        if not self._silent:
            if not self._call.prompts.possible:
                raise NeedsConfirmation(
                    "can only process forms on a valid terminal",
                    hints=("--set NAME=VALUE and --defaults answer all questions",),
                )
            self._say(self._description, "form")
            self._call.prompts.ask("Press enter to start", check=str)
        self._ask_all(self._properties, self._root)
        return self._root

    def _say(self, text: str, name: str = "property") -> None:
        self._call.output.print(rendered(text, self._data, name))
        self._call.output.print()

    def _introduce(self, one: Property) -> None:
        if not self._silent:
            self._call.output.print()
            self._say(one.description)

    def _ask_all(self, properties: tuple[Property, ...], into: Answers) -> None:
        for one in properties:
            if self._wanted(one):
                self._ask(one, into)

    def _wanted(self, one: Property) -> bool:
        if not one.condition:
            return True
        environment = {**self._data, "input": self._root, "Input": self._root}
        return _holds(one.condition, environment)

    def _ask(self, one: Property, into: Answers) -> None:
        if one.type == ARRAY:
            into[one.name] = self._entries(one) if one.properties else self._list(one)
        elif one.type in (OBJECT, "") and one.properties:
            self._introduce(one)
            self._objects(one, into)
        elif one.type == "bool":
            into[one.name] = self._truth(one)
        elif one.type in ("integer", "float"):
            into[one.name] = self._number(one)
        else:
            answer = self._text(one)
            if answer or not one.if_empty:
                into[one.name] = answer
            elif one.if_empty != ABSENT:
                into.update(_nothing(one))

    def _objects(self, one: Property, into: Answers) -> None:
        """One under the property's own name, or some under names that the person gives."""
        if one.type != OBJECT:
            self._object(one, one.name, into)
            return
        for at in range(ENTRIES_MAX):
            if (at or not one.required) and not self._another(f"Add {one.name} entry"):
                into.update(_nothing(one))
                return
            self._needs_person(one)
            name = self._call.prompts.ask(
                "Unique name for this entry", check=_required, help_text=one.help
            )
            self._object(one, name, into)

    def _object(self, one: Property, name: str, into: Answers) -> None:
        inner: Answers = {}
        into[name] = inner
        self._ask_all(one.properties, inner)
        if not inner:
            into[name] = None

    def _entries(self, one: Property) -> list[object]:
        """Of an array of objects; a condition sees the one that is being made."""
        made: list[object] = []
        while len(made) < ENTRIES_MAX:
            if self._ends(one, made):
                return made or ([] if one.if_empty == ABSENT else [_nothing(one)])
            self._needs_person(one)
            inner: Answers = {}
            before = self._root.get(one.name)
            self._root[one.name] = inner
            self._ask_all(one.properties, inner)
            self._root[one.name] = before
            made.append(inner)
        return made

    def _list(self, one: Property) -> list[object]:
        if one.path in self._given:
            return [_valid(one, text) for text in self._given[one.path].split(",") if text]
        made: list[object] = []
        while len(made) < ENTRIES_MAX:
            if self._ends(one, made):
                break
            self._needs_person(one)
            answer = self._text(one)
            if not answer:
                break
            made.append(answer)
        return made

    def _ends(self, one: Property, made: list[object]) -> bool:
        """Whether a list has all its entries; one that has to have some is not asked for none."""
        question = f"Add {'additional' if made else 'first'} '{one.name}' entry"
        return bool(made or not one.required) and not self._another(question)

    def _another(self, question: str) -> bool:
        return not self._silent and self._call.prompts.confirm(question)

    def _needs_person(self, one: Property) -> None:
        if self._silent:
            raise UsageError(f"{one.path}: entries are asked for on a terminal, without --defaults")

    def _answered(self, one: Property, check: Callable[[str], str]) -> str:
        """By a flag or a person. Raises UsageError."""
        if one.path in self._given or self._silent:
            try:
                return check(self._given.get(one.path, one.default))
            except ValueError as error:
                raise UsageError(
                    f"{one.path}: {error}", hints=(f"--set {one.path}=VALUE answers it",)
                ) from None
        self._introduce(one)
        name, told = shown_name(one.name), _CONTROL.sub("", one.help)
        if one.choices:
            return check(self._call.prompts.choose(name, one.choices, default=one.default))
        if one.type == "password":
            return self._call.prompts.secret(name, check=check, help_text=told)
        return self._call.prompts.ask(name, default=one.default, check=check, help_text=told)

    def _text(self, one: Property) -> str:
        if one.choices and not one.default:
            one = one._replace(default=one.choices[0])
        return self._answered(one, lambda text: _valid(one, text))

    def _truth(self, one: Property) -> bool:
        if one.default.lower() not in _NO_FLAG:
            raise UsageError(f"form.yaml: {one.path}: invalid default {one.default!r}")
        if one.path in self._given or self._silent:
            answer = self._answered(one, _truth)
            return _NO_FLAG[answer.lower()]
        self._introduce(one)
        default = _NO_FLAG[one.default.lower()]
        return self._call.prompts.confirm(shown_name(one.name), default=default)

    def _number(self, one: Property) -> int | float:
        whole = one.type == "integer"
        test = "isInt(value)" if whole else "isFloat(value)"
        both = f"{test} && {one.validation}" if one.validation else test
        asked = one._replace(validation=both, required=True, choices=())
        answer = self._answered(asked, lambda text: _valid(asked, text))
        return int(answer) if whole else float(answer)


def shown_name(name: str) -> str:
    """A question, in one line and without control characters."""
    return _CONTROL.sub("", name.replace("\n", " "))


def _paths(properties: tuple[Property, ...]) -> list[str]:
    """Of the questions that have one answer."""
    found: list[str] = []
    for one in properties:
        if one.properties:
            found += _paths(one.properties) if one.type == "" else []
        else:
            found.append(one.path)
    return found


def _nothing(one: Property) -> Answers:
    empty: Mapping[str, object] = {ARRAY: [], OBJECT: {}}
    return {one.name: empty[one.if_empty]} if one.if_empty in empty else {}


def _required(text: str) -> str:
    if not text:
        raise ValueError("Value is required")
    return text


def _truth(text: str) -> str:
    if text.lower() not in _NO_FLAG:
        raise ValueError("true or false")
    return text


def _valid(one: Property, text: str) -> str:
    """Raises ValueError."""
    if one.required and not text:
        raise ValueError("value is too short. Min length is 1")
    if one.choices and text not in one.choices:
        raise ValueError(f"one of {', '.join(one.choices)}")
    if not one.validation or (not text and not one.required):
        return text
    try:
        passed = _holds(one.validation, {"value": text, "Value": text})
    except JsctlError as error:
        why = str(error).removeprefix("invalid expression: ")
        raise ValueError(f'validation using "{one.validation}" failed: {why}') from None
    if not passed:
        raise ValueError(f"validation did not pass: {one.validation}")
    return text


def _is_whole(text: str) -> bool:
    return bool(re.fullmatch(r"[+-]?[0-9]{1,19}", text)) and INT64_MIN <= int(text) <= INT64_MAX


def _is_real(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text == text.strip()


def _is_address(text: str, version: int = 0) -> bool:
    try:
        found = ip_address(text)
    except ValueError:
        found = None
    if found is None or (version and isinstance(found, IPv4Address) != (version == 4)):
        raise ValueError(f"{text} is not an IP{f'v{version}' if version else ''} address")
    return True


def _is_safe(text: str) -> bool:
    for mark in ("`", "$", ";", "|", "&&", ">", "<"):
        if mark in text:
            raise ValueError(f"may not contain '{mark}'")
    return True


CHECKS: Mapping[str, Callable[..., object]] = {
    **dict.fromkeys(("isInt", "is_int"), _is_whole),
    **dict.fromkeys(("isFloat", "is_float"), _is_real),
    **dict.fromkeys(("isIP", "is_ip"), _is_address),
    **dict.fromkeys(("isIPv4", "is_ipv4"), lambda text: _is_address(text, 4)),
    **dict.fromkeys(("isIPv6", "is_ipv6"), lambda text: _is_address(text, 6)),
    **dict.fromkeys(("isShellSafe", "is_shellsafe"), _is_safe),
}
"""What validations may call beside the functions of all expressions."""
