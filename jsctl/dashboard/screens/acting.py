"""From a key press to the outcome of an action: dialog, request, toast, event."""

from typing import TYPE_CHECKING

from jsctl.dashboard.actions.catalog import Action, Target
from jsctl.dashboard.actions.plans import Run
from jsctl.dashboard.connection.link import failures
from jsctl.dashboard.model.snapshot import Consumer, Level, Meta, Stream
from jsctl.dashboard.screens.dialogs import ConfirmScreen

if TYPE_CHECKING:
    from jsctl.dashboard.app import Dashboard


def name_of(target: Target) -> str:
    """How events call it."""
    if isinstance(target, Consumer):
        return f"{target.stream} > {target.name}"
    return "meta group" if isinstance(target, Meta) else target.name


def start_action(app: "Dashboard", action: Action, target: Target) -> None:
    """Asks, then does it."""
    if action.plan is None:
        from jsctl.dashboard.screens.editing import open_editor, open_publisher

        if action.name == "edit":
            open_editor(app, target)
        elif isinstance(target, Stream):
            open_publisher(app, target)
        return
    plan = action.plan(target, app.snapshot)

    def answered(choice: str | None) -> None:
        if choice is not None:
            perform(app, action.name, name_of(target), plan.run, choice)

    app.push_screen(ConfirmScreen(plan, app.ink), answered)


def perform(app: "Dashboard", what: str, who: str, run: Run, choice: str) -> None:
    """Does it beside the screen and tells how it went."""

    name = f"{what} {who}"

    async def work() -> None:
        app.busy(name, True)
        try:
            await attempt()
        finally:
            app.busy(name, False)

    async def attempt() -> None:
        if app.poller is None:
            app.told(Level.BAD, what, who, "there is no connection")
            return
        try:
            said = await run(app.poller.link, choice)
        except failures() as error:
            app.told(Level.BAD, what, who, str(error))
        else:
            app.told(Level.OK, what, who, said)

    app.run_worker(work(), group="actions", exclusive=False)
