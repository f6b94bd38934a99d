# SPDX-License-Identifier: MIT OR Apache-2.0
"""`steady direct` with the character device of an emulated card, in the guest."""

import json
from pathlib import Path
from typing import Any

import pytest
from releases import RELEASES
from steady_lab.paths import GUEST_PROJECT, PROJECT
from steady_lab.targets.target import BootRequest
from steady_lab.targets.uml import uml

CARD = PROJECT / "experiments" / "devices" / "test-plain.toml"
MIB = 1 << 20


@pytest.mark.parametrize("release", RELEASES)
def test_a_card_is_taken_used_and_given_back(release: str, work: Path) -> None:
    environment = {"STEADY": f"{GUEST_PROJECT}/build/bin/steady", "PROJECT": str(GUEST_PROJECT)}
    command = ["sh", f"{GUEST_PROJECT}/tests/direct/direct.sh"]
    request = BootRequest(command, work, device=CARD, environment=environment, modules=["chario"])
    result = uml(release).boot(request)
    print(result.output)
    assert result.exit_status == 0 and "all done" in result.output, result.output[-3000:]
    info = json.loads((work / "info.json").read_text())["chardisk"]
    assert info["card"] == "mmc0:0001" and info["mode"] == "own"
    assert info["bytes"] == 256 * MIB and info["has_regions"] and info["can_write"]
    assert info["regions"] == [
        {"offset": MIB, "bytes": 8 * MIB, "read_only": False},
        {"offset": 16 * MIB, "bytes": MIB, "read_only": True},
    ]
    uses = json.loads((work / "buffer.json").read_text())["uses"]
    assert [(use["use"], use["works"]) for use in uses] == [("direct", True), ("chardisk", True)]
    bench = json.loads((work / "bench.json").read_text())["results"]
    # 100 us + 64 x 4 us for every read of this card, and no time for software.
    for result_of_way in bench:
        assert result_of_way["count"] == 50
        assert 356_000 <= result_of_way["latency_ns"]["p50"] <= 1.2 * 356_000
    _assert_variants_differ_only_in_the_way(json.loads((work / "variants.json").read_text()))


def _assert_variants_differ_only_in_the_way(record: dict[str, Any]) -> None:
    assert record["device"]["name"] == "mmcblk0"
    block, chardisk = record["results"]
    assert (block["variant"], chardisk["variant"]) == ("block", "chardisk")
    assert chardisk["knobs"]["chardisk/bg_kib"]["read_back"] == 16
    for result in record["results"]:
        rt, bg = result["classes"]["rt"], result["classes"]["bg"]
        assert rt["count"] == 100 and bg["count"] > 0 and rt["errors"] + bg["errors"] == 0
    # A read of 116 us, and before it 510 KiB of zeroes being written (4.3 ms), or 16 KiB (348 us).
    assert block["classes"]["rt"]["latency_ns"]["max"] > 1_000_000
    assert chardisk["classes"]["rt"]["latency_ns"]["max"] < 1.1 * 464_000
