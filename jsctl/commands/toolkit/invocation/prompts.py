"""Questions, asked only when stdin and stdout are both terminals; names in them may be anything."""

import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from jsctl.commands.toolkit.invocation.reading import broken_off
from jsctl.errors import Aborted, NeedsConfirmation
from jsctl.render.table import readable

if TYPE_CHECKING:
    from prompt_toolkit.application import Application

T = TypeVar("T")
NO_TERMINAL_INPUT = "cannot prompt for user input without a terminal"
NO_TERMINAL_CONFIRM = "cannot ask for confirmation without a terminal"
NOT_CONFIRMED = "could not obtain confirmation"
TRIES_MAX = 100
"""How often one question is asked: who answers it so often is no person."""
LOOK_S = 0.05


class Prompts:
    """Asks on stderr, so that stdout stays the answer; `mark` names the context in use."""

    def __init__(self, context_name: str = "", *, forbidden: bool = False) -> None:
        self.mark = f"[{context_name}] ?" if context_name else "?"
        self.possible = not forbidden and sys.stdin.isatty() and sys.stdout.isatty()

    def confirm(self, question: str, *, default: bool = False, prefix: str = NOT_CONFIRMED) -> bool:
        """Yes or no; raises NeedsConfirmation, with `prefix` in front, without a terminal."""
        if not self.possible:
            raise NeedsConfirmation(
                f"{prefix}: {NO_TERMINAL_CONFIRM}" if prefix else NO_TERMINAL_CONFIRM,
                hints=("--force skips the question",),
            )
        for _ in range(TRIES_MAX):
            answer = self._line(f"{question} ({'Y/n' if default else 'y/N'})")
            if answer.lower() in ("y", "yes", "n", "no", ""):
                return answer.lower().startswith("y") or (not answer and default)
            problem = f'"{readable(answer)}" is not a valid answer, please try again.'
            sys.stderr.write(f"X Sorry, your reply was invalid: {problem}\n")
        return False

    def ask(
        self,
        question: str,
        *,
        default: str = "",
        check: Callable[[str], T],
        help_text: str = "",
        prefix: str = "invalid input",
    ) -> T:
        """A line, checked until `check` accepts it; its ValueErrors are shown.

        Raises NeedsConfirmation without a terminal.
        """
        if not self.possible:
            raise NeedsConfirmation(
                f"{prefix}: {NO_TERMINAL_INPUT}" if prefix else NO_TERMINAL_INPUT
            )
        told = "[? for help]" if help_text else ""
        for _ in range(TRIES_MAX):
            asked = (question, told, f"({default})" if default else "")
            answer = self._line(" ".join(filter(None, asked)))
            if answer == "?" and help_text:
                told = self._helped(help_text)
                continue
            try:
                return check(answer or default)
            except ValueError as error:
                sys.stderr.write(f"X Sorry, your reply was invalid: {error}\n")
        raise Aborted(f"{question}: no usable answer")

    def _helped(self, text: str) -> str:
        """Shows the help of a question, which then does not offer it any more."""
        sys.stderr.write(f"{self.mark} {text}\n")
        return ""

    def secret(self, question: str, *, check: Callable[[str], T], help_text: str = "") -> T:
        """As `ask`, of what nobody is to read on the screen."""
        from getpass import getpass

        if not self.possible:
            raise NeedsConfirmation(NO_TERMINAL_INPUT)
        told = "[? for help] " if help_text else ""
        for _ in range(TRIES_MAX):
            try:
                with broken_off():
                    answer = getpass(f"{self.mark} {question} {told}", sys.stderr)
                if answer == "?" and help_text:
                    told = self._helped(help_text)
                    continue
                return check(answer)
            except (KeyboardInterrupt, EOFError):
                sys.stderr.write("\n")
                raise Aborted("interrupt") from None
            except ValueError as error:
                sys.stderr.write(f"X Sorry, your reply was invalid: {error}\n")
        raise Aborted(f"{question}: no usable answer")

    def choose(
        self, question: str, words: Sequence[str], *, default: str = "", prefix: str = ""
    ) -> str:
        """One of the words, by arrow keys; Enter takes the marked one, at first the default.

        What is typed leaves only the words that contain it; where none does Enter takes none.
        Raises NeedsConfirmation without a terminal and Aborted when it is left.
        """
        if not self.possible:
            raise NeedsConfirmation(
                f"{prefix}: {NO_TERMINAL_INPUT}" if prefix else NO_TERMINAL_INPUT
            )
        if os.environ.get("TERM", "dumb") == "dumb":  # it cannot move its cursor
            return self._numbered(question, words, default)
        return self._selected(question, words, default)

    def _selected(self, question: str, words: Sequence[str], default: str) -> str:
        import questionary
        from prompt_toolkit.output import create_output

        asking = questionary.select(
            question,
            choices=[questionary.Choice(word) for word in words],
            default=default if default in words else None,
            qmark=self.mark,
            use_jk_keys=False,
            use_search_filter=True,
            output=create_output(stdout=sys.stderr),
        )
        _nothing_for_nothing(asking.application)
        picked = _run_beside(asking.application)
        if picked is None:
            raise Aborted("interrupt")
        return picked

    def _numbered(self, question: str, words: Sequence[str], default: str) -> str:
        """By number, name or the start of it; an empty answer takes the default or the first."""
        for at, word in enumerate(words, 1):
            sys.stderr.write(f"  {at}) {readable(word)}\n")

        def picked(answer: str) -> str:
            if answer.isdigit() and 1 <= int(answer) <= len(words):
                return words[int(answer) - 1]
            found = [word for word in words if word.lower().startswith(answer.lower())]
            exact = [word for word in words if word == answer]
            if len(exact or found) != 1 or not answer:
                raise ValueError(f"choose one of {', '.join(words)}")
            return (exact or found)[0]

        return self.ask(question, default=default or words[0], check=picked)

    def _line(self, question: str) -> str:
        try:
            with broken_off():
                sys.stderr.write(readable(f"{self.mark} {question} "))
                sys.stderr.flush()
                line = sys.stdin.readline()
        except KeyboardInterrupt:
            sys.stderr.write("\n")
            raise Aborted("interrupt") from None
        if not line:
            sys.stderr.write("\n")
            raise Aborted("interrupt")
        return line.strip()


def _run_beside(asking: "Application[object]") -> str | None:
    """What was picked; None where it was left. In a thread, because the command's own loop runs in
    this one, which hears of a signal that comes from elsewhere and is no key."""
    picked: list[str] = []
    ended = threading.Event()  # A thread that is joined is taken for ended by an interrupt.

    def run() -> None:
        try:
            with suppress(KeyboardInterrupt, EOFError):
                picked.append(str(asking.run(handle_sigint=False)))
        finally:
            ended.set()

    def leave() -> None:
        if not asking.is_done:
            asking.exit(exception=EOFError())

    threading.Thread(target=run).start()
    try:
        with broken_off():
            ended.wait()
    except KeyboardInterrupt:
        while not ended.wait(LOOK_S):  # It gives the terminal back, and may not have begun yet.
            with suppress(RuntimeError):  # Its loop has ended just now.
                if asking.loop is not None:
                    asking.loop.call_soon_threadsafe(leave)
        return None
    return next(iter(picked), None)


def _nothing_for_nothing(asking: "Application[object]") -> None:
    """Enter takes no word while none contains what was typed: the library shows all of them then,
    and would take one that nobody meant."""
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.key_binding import KeyBindings, merge_key_bindings
    from prompt_toolkit.keys import Keys
    from questionary.prompts.common import InquirerControl

    windows = asking.layout.find_all_windows()
    (shown,) = (one.content for one in windows if isinstance(one.content, InquirerControl))

    def nothing_found() -> bool:
        typed = (shown.search_filter or "").lower()
        return not any(typed in str(one.title).lower() for one in shown.choices)

    keys = KeyBindings()

    @keys.add(Keys.ControlM, filter=Condition(nothing_found), eager=True)
    def stay(_event: object) -> None:
        """Until something is found."""

    asking.key_bindings = merge_key_bindings([asking.key_bindings or KeyBindings(), keys])
