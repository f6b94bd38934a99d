# SPDX-License-Identifier: MIT OR Apache-2.0
"""Picture an HTML page with a headless chromium, without network or lasting state."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from steady_lab.errors import LabError

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
TIMEOUT_S = 60
SCALE = 2  # device pixels per CSS pixel, so that print and dense screens stay sharp


def find_chromium() -> str | None:
    """Return the path of an installed chromium, None if there is none."""
    found = (shutil.which(name) for name in CHROMIUM_NAMES)
    return next((path for path in found if path), None)


def chromium_flags() -> list[str]:
    """Return the flags of a quiet headless run; root cannot use chromium's own sandbox."""
    return [*CHROMIUM_FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]


def take_screenshot(html: str, target: Path, size_px: tuple[int, int]) -> None:
    """Write a PNG of the page at `size_px` (width, height); raises LabError when it fails."""
    chromium = find_chromium()
    if chromium is None:
        raise LabError("a screenshot needs chromium: apt-get install chromium")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="steadyio-screenshot-") as scratch:
        page = Path(scratch) / "page.html"
        page.write_text(html, encoding="utf-8")
        command = [
            chromium,
            *chromium_flags(),
            "--hide-scrollbars",
            f"--force-device-scale-factor={SCALE}",
            f"--window-size={size_px[0]},{size_px[1]}",
            f"--user-data-dir={scratch}/profile",
            f"--screenshot={target.absolute()}",
            page.as_uri(),
        ]
        target.unlink(missing_ok=True)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise LabError(f"chromium took longer than {TIMEOUT_S} s for {target}") from error
    if done.returncode != 0 or not target.is_file():
        raise LabError(f"chromium made no screenshot {target}:\n{done.stderr[-2000:]}")
