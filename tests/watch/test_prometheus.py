# SPDX-License-Identifier: MIT OR Apache-2.0
"""A real Prometheus scrapes the watch: alerts fire, and the dashboard's queries have answers."""

import json
import re
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from disk import Disk
from steady_lab.paths import BUILD, PROJECT
from steady_lab.root.alone import prometheus
from steady_lab.root.sandbox import Place

RULES = PROJECT / "packaging" / "prometheus" / "steadyio.rules.yml"
DASHBOARD = PROJECT / "packaging" / "grafana" / "steadyio.json"
VARIABLES = {"$device": ".*", "$__rate_interval": "1m", "$__range": "1m"}
CONFIG = """\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [/tmp/steadyio.rules.yml]
scrape_configs:
  - job_name: steady
    static_configs: [{{targets: ["{address}"]}}]
"""


@contextmanager
def watched(disk: Disk) -> Iterator[str]:
    """A watch that answers; yields its address."""
    words: list[str | Path] = [BUILD / "bin" / "steady", "watch", "--sysfs", disk.root, "--quiet"]
    words += ["--interval", "100ms", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as watch:
        assert watch.stderr is not None
        (address,) = re.findall("http://([^/]+)/metrics", watch.stderr.readline())
        try:
            yield address
        finally:
            watch.terminate()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


@contextmanager
def scraping(address: str, work: Path) -> Iterator[Callable[..., Any]]:
    """A Prometheus; yields a function that asks its interface."""
    config, port = work / "prometheus.yml", free_port()
    config.write_text(CONFIG.format(address=address), encoding="utf-8")
    places = [Place(config, "/tmp/prometheus.yml"), Place(RULES, "/tmp/steadyio.rules.yml")]
    command = prometheus("prometheus", places, network=True)
    command += ["--config.file=/tmp/prometheus.yml", "--storage.tsdb.path=/tmp/data"]
    command += [f"--web.listen-address=127.0.0.1:{port}"]

    def ask(what: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{what}?{query}") as answer:
            return json.load(answer)["data"]

    with (work / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            yield ask
        finally:
            process.terminate()


def wait_for(found: Callable[[], Any]) -> Any:
    """Asks again and again until there is something."""
    for _ in range(600):
        try:
            if answer := found():
                return answer
        except OSError:
            pass  # Prometheus has not begun to listen.
        time.sleep(0.1)
    raise AssertionError("nothing, after 600 questions")


def queries() -> list[str]:
    found = []
    for text in re.findall(r'"expr": (".*")', DASHBOARD.read_text("utf-8")):
        query = json.loads(text)
        for name, value in VARIABLES.items():
            query = query.replace(name, value)
        found.append(query)
    return found


def test_a_late_request_becomes_an_alert(work: Path) -> None:
    disk = Disk(work / "sys")
    disk.latency("rt4", "count 1 sum_ns 4000 max_ns 4000 late 0", "4096:1")
    late = 'steady_late_requests_total{class="rt4"}'
    with watched(disk) as address, scraping(address, work) as ask:
        wait_for(lambda: ask("query", query=late)["result"])
        disk.latency("rt4", "count 3 sum_ns 9000000 max_ns 6000000 late 2", "4096:1 6291456:2")

        def firing() -> Any:
            return [one for one in ask("alerts")["alerts"] if one["state"] == "firing"]

        (alert,) = wait_for(firing)
        assert alert["labels"] | {"instance": "", "job": ""} == {
            "alertname": "SteadyLateRequests",
            "severity": "critical",
            "device": "mmcblk0",
            "class": "rt4",
            "instance": "",
            "job": "",
        }
        for query in queries():
            assert ask("query", query=query)["resultType"] == "vector", query
        p99 = next(query for query in queries() if "0.99" in query)
        (row,) = ask("query", query=p99)["result"]
        assert 0.005242 < float(row["value"][1]) <= 0.006291456
