# SPDX-License-Identifier: MIT OR Apache-2.0
"""A report in a real browser, with its drawings, its console and its requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright
from steady_lab.pages.screenshot import chromium_flags, find_chromium

CHROMIUM = find_chromium()
# For each step, on a busy machine: what comes too late is not what is tested.
PATIENCE_MS = 300_000
expect.set_options(timeout=PATIENCE_MS)
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


@dataclass
class Seen:
    """A page, with its console output and its requests, while loading and after."""

    page: Page
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def headless_browser() -> Iterator[Browser]:
    """Give a browser; it ends with the block."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=CHROMIUM, args=chromium_flags(), timeout=PATIENCE_MS
        )
        yield launched
        launched.close()


def open_report(browser: Browser, file: Path, size: dict[str, int]) -> Seen:
    """Open the report in a fresh page of the given size, watching it."""
    page = browser.new_page(viewport={"width": size["width"], "height": size["height"]})
    page.set_default_timeout(PATIENCE_MS)
    seen = Seen(page)
    page.on("console", lambda message: seen.console.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: seen.console.append(f"error: {error}"))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_selector(".plot .legendpoints")
    return seen


def boxes(page: Page, selector: str) -> list[dict[str, float]]:
    """Return the drawn size and place of every element."""
    script = "all => all.map(e => { const b = e.getBoundingClientRect();"
    script += " return {x: b.x, y: b.y, width: b.width, height: b.height}; })"
    found: list[dict[str, float]] = page.eval_on_selector_all(selector, script)
    return found
