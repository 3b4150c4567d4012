"""What the templates of a bundle come to: files by name, nothing of them written yet."""

from collections.abc import Mapping
from pathlib import PurePosixPath

from jsctl.commands.server.bundles.library import FUNCTIONS
from jsctl.commands.server.bundles.limits import (
    RENDER_S,
    STRETCH_READ,
    WRITTEN_MAX,
    new_budget,
    within,
)
from jsctl.commands.server.bundles.source import Bundle
from jsctl.commands.toolkit.templating.parsing import TemplateError
from jsctl.commands.toolkit.templating.running import Template
from jsctl.commands.toolkit.templating.values import Callee
from jsctl.errors import JsctlError

PARTIALS = "_partials"
FILES_MAX = 10_000
DEPTH_MAX = 50
TOLD_MAX = 500


class _SkippedError(Exception):
    """A template that comes to nothing, in a bundle that skips those."""


class Scaffold:
    """Renders a bundle; `extra` are functions beside those of all bundles."""

    def __init__(self, bundle: Bundle, extra: Mapping[str, Callee]) -> None:
        self._bundle, self._made = bundle, dict[str, str]()
        self._written = self._depth = 0
        self._budget = new_budget()
        self._functions = {
            **FUNCTIONS,
            **extra,
            "write": Callee(self._write, ("string", "string")),
            "render": Callee(self._render, ("string", "any")),
        }

    def text(self, text: str, data: Mapping[str, object]) -> str:
        """Of one of the bundle's own texts. Raises JsctlError."""
        try:
            with within(RENDER_S):
                return self._run("string", text, data)
        except _SkippedError:
            return ""
        except TemplateError as error:
            raise JsctlError(_shortened(str(error))) from None

    def files(self, data: Mapping[str, object]) -> Mapping[str, str]:
        """All that is to be written, by name below the target; folders end with a slash.

        Raises JsctlError.
        """
        for name in sorted(self._bundle.files, key=lambda name: name.split("/")):
            if PARTIALS in name.split("/"):
                continue
            if name.endswith("/"):
                self._made.setdefault(name, "")
                continue
            try:
                with within(RENDER_S):
                    self._write(name, self._of_file(name, data))
            except _SkippedError:
                continue
            except (TemplateError, ValueError) as error:
                raise JsctlError(_shortened(str(error))) from None
        return self._made

    def _of_file(self, name: str, data: object) -> str:
        text = self._bundle.files[name].decode("utf-8", "surrogateescape")
        return self._run(name.rpartition("/")[2], text, data)

    def _run(self, name: str, text: str, data: object) -> str:
        left, right = self._bundle.delimiters
        self._budget.step(len(text) // STRETCH_READ)
        try:
            template = Template(name, text, self._functions, left, right)
        except TemplateError as error:
            raise TemplateError(f"parsing template {name} failed: {error}") from None
        made = template.run(data, budget=self._budget)
        if self._bundle.skips_empty and not made.strip():
            raise _SkippedError
        return made

    def _render(self, name: str, data: object) -> str:
        inside = _normal(name, "source")
        if inside not in self._bundle.files or inside.endswith("/"):
            raise ValueError(f"open {name}: no such file or directory")
        if self._depth == DEPTH_MAX:
            raise JsctlError(f"templates that render each other, more than {DEPTH_MAX} deep")
        self._depth += 1
        try:
            return self._of_file(inside, data)
        except TemplateError as error:
            raise ValueError(str(error)) from None
        finally:
            self._depth -= 1

    def _write(self, name: str, content: str) -> str:
        inside = _normal(name, "target")
        self._written += len(content)
        if self._written > WRITTEN_MAX or len(self._made) >= FILES_MAX:
            raise ValueError(f"more than {FILES_MAX} files or {WRITTEN_MAX} bytes are written")
        self._made[inside] = content
        return ""


def _shortened(text: str) -> str:
    """An error without the middle: it quotes what it is about, which may be all of a template."""
    return text if len(text) <= TOLD_MAX else f"{text[: TOLD_MAX // 2]}...{text[-TOLD_MAX // 2 :]}"


def _normal(name: str, which: str) -> str:
    """Without dots; raises ValueError for a name that leads elsewhere."""
    parts: list[str] = []
    for part in PurePosixPath(name.lstrip("/")).parts:
        if part == ".." and not parts:
            raise ValueError(f"{name} is not in {which} directory")
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    if not parts or "\0" in name:
        raise ValueError(f"{name!r} is not in {which} directory")
    return "/".join(parts)
