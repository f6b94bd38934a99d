# SPDX-License-Identifier: MIT OR Apache-2.0
"""The alert rules and the dashboard: what they ask for exists, and alerts fire when they should."""

import json
import re
import subprocess
from pathlib import Path

from disk import Disk
from steady_lab.paths import BUILD, PROJECT
from steady_lab.root.alone import prometheus
from steady_lab.root.sandbox import Place

RULES = PROJECT / "packaging" / "prometheus" / "steadyio.rules.yml"
DASHBOARD = PROJECT / "packaging" / "grafana" / "steadyio.json"
SERIES = PROJECT / "tests" / "watch" / "rules_test.yml"
# Of a drive and of a recorder, which the folder does not have.
ELSEWHERE = {"steady_wear_spare_ratio", "steady_media_errors_total"}
RECORDER = re.compile("steady_recorder_(up|received_records_total|lost_records_total)")


def promtool(
    *arguments: str, places: list[Place], text: str = ""
) -> subprocess.CompletedProcess[str]:
    command = [*prometheus("promtool", places), *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def exposition(work: Path) -> str:
    """What the watch writes for the node exporter."""
    disk, file = Disk(work / "sys"), work / "steady.prom"
    used = "count 3 sum_ns 9000 max_ns 4000 late 0"
    disk.latency("rt0", used, "4096:3")
    words: list[str | Path] = [BUILD / "bin" / "steady", "watch", "--sysfs", disk.root, "--json"]
    words += ["--interval", "10ms", "--openmetrics", file]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as watch:
        assert watch.stdout is not None
        for line in watch.stdout:
            if json.loads(line)["devices"][0]["wear"]:
                break
        watch.stdout.readline()
        text = file.read_text(encoding="utf-8")
        watch.terminate()
    return text


def names(text: str) -> set[str]:
    return set(re.findall(r"\bsteady_\w+", text))


def test_rules_fire_when_they_should() -> None:
    places = [Place(RULES, "/tmp/steadyio.rules.yml"), Place(SERIES, "/tmp/rules_test.yml")]
    done = promtool("test", "rules", "/tmp/rules_test.yml", places=places)
    assert (done.returncode, "SUCCESS" in done.stdout) == (0, True), done.stdout + done.stderr


def test_each_rule_is_tested() -> None:
    alerts = re.findall(r"alert: (\w+)", RULES.read_text("utf-8"))
    assert set(alerts) == set(re.findall(r"alertname: (\w+)", SERIES.read_text("utf-8")))


def test_the_node_exporter_can_read_the_text_file(work: Path) -> None:
    # promtool reads as the node exporter does: it knows counters of OpenMetrics as numbers only.
    done = promtool("check", "metrics", places=[], text=exposition(work))
    said = (done.stdout + done.stderr).splitlines()
    assert [line for line in said if not line.endswith("_total no help text")] == []


def test_rules_and_dashboard_ask_for_metrics_that_are_there(work: Path) -> None:
    shown = names(exposition(work)) | ELSEWHERE
    expressions = re.findall(r'"expr": (".*")', DASHBOARD.read_text("utf-8"))
    assert len(expressions) > 15
    asked = names(" ".join(expressions)) | names(RULES.read_text("utf-8"))
    assert {name for name in asked - shown if not RECORDER.fullmatch(name)} == set()


def test_no_panel_mixes_a_ratio_with_another_quantity() -> None:
    for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"]:
        ratios = {"_ratio" in target["expr"] for target in panel["targets"]}
        assert len(ratios) == 1, panel["title"]
        if ratios == {True}:
            assert panel["fieldConfig"]["defaults"]["unit"] == "percentunit", panel["title"]
