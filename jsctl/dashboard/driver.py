"""How a dashboard behind a page reads: it ends when the server of the page is gone."""

import os

from textual.drivers.web_driver import WebDriver


class PageDriver(WebDriver):
    """Textual's own goes on without anybody who could see it or say that it has to end."""

    def run_input_thread(self) -> None:
        """Until the end of what comes in."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno)  # nobody reads the last words
            self._app.call_from_thread(self._app.exit)
