# SPDX-License-Identifier: MIT OR Apache-2.0
"""A real database answers a few transactions in the lab, and the same boot gives the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from steady_lab.figures.application import APPLICATIONS
from steady_lab.figures.spec import EXPERIMENTS
from steady_lab.kernels.build import LabKernel
from verdicts import SOURCES

pytestmark = pytest.mark.reads(*SOURCES)

VARIANT = "k2-split4"
EVENTS = 5
# The card with the database is prepared first, where that was never done.
RUN_TIMEOUT_S = 1800


def small_figure(folder: Path) -> Path:
    """Write Figure 9 with few transactions; return its file."""
    figure, spec = folder / "figures" / "s1-fig8.toml", folder / "applications" / "s1-oltp.toml"
    for target in (figure, spec):
        target.parent.mkdir()
    original = (EXPERIMENTS / "figures" / "s1-fig8.toml").read_text(encoding="utf-8")
    figure.write_text(original, encoding="utf-8")
    original = (APPLICATIONS / "s1-oltp.toml").read_text(encoding="utf-8")
    shortened = original.replace("events = 500", f"events = {EVENTS}")
    assert shortened != original
    spec.write_text(shortened, encoding="utf-8")
    return figure.with_name("s1-fig8-write.toml")


def test_a_database_runs_in_virtual_time(base_kernel: LabKernel, work: Path) -> None:
    figure, build = small_figure(work), work / "build"
    command = [sys.executable, "-m", "steady_lab.cli", "run", str(figure), "--build", str(build)]
    records = []
    for _ in range(2):
        done = subprocess.run(
            [*command, "--only", VARIANT, "--fresh"],
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        folder = build / "work" / figure.stem / VARIANT
        records.append((folder / "record.json").read_bytes())
    assert records[0] == records[1]
    assert not (folder / "card.img").exists()
    (result,) = json.loads(records[0])["results"]
    rt, bg = result["classes"]["rt"], result["classes"]["bg"]
    assert result["knobs"]["iosched/split_kib"] == {"wanted": 4, "read_back": 4}
    assert (rt["count"], rt["errors"]) == (EVENTS, 0)
    # 16 queries read about 20 pages of 16 KiB; the card alone needs 0.3 ms for each.
    assert 5e6 < rt["latency_ns"]["min"] < rt["latency_ns"]["max"] < 50e6
    assert bg["bytes"] >= 2 * 512 * 1024
