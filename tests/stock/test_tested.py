# SPDX-License-Identifier: MIT OR Apache-2.0
"""What tests/stock/tested.py reads out of results."""

from pathlib import Path

from tested import earlier, kernel_tests, rows, table

DATA = "k2: data, with counted splitting and with `rt_block_us`"
REMOVED = "k2: the disk removed under load"


def results(folder: Path, *cases: str) -> Path:
    file = folder / "results.xml"
    file.write_text(f"<testsuite>{''.join(cases)}</testsuite>")
    return file


def case(name: str, inside: str = "", **properties: str) -> str:
    pairs = "".join(f'<property name="{k}" value="{v}"/>' for k, v in properties.items())
    return f'<testcase name="{name}"><properties>{pairs}</properties>{inside}</testcase>'


def test_a_boot_of_several_scripts_has_a_cell_for_each(tmp_path: Path) -> None:
    cells = {"cell data_under_load-nvme": "passed", "cell removal_under_load-nvme": "failed"}
    boot = case("test_each_script_passes[pci-6.1]", "<failure/>", kernel="6.1", **cells)
    assert rows(results(tmp_path, boot), ["6.1"]) == {
        (DATA, "NVMe"): {"6.1": True},
        (REMOVED, "NVMe"): {"6.1": False},
    }


def test_a_test_of_its_own_is_a_cell_that_failed_if_it_did(tmp_path: Path) -> None:
    about = {"script": "data_under_load", "disk": "sd", "kernel": "6.12-kcsan"}
    good, bad = case("a[1]", **about), case("a[2]", "<failure/>", **about)
    for cases, passed in ((good,), True), ((bad,), False), ((good, bad), False):
        found = rows(results(tmp_path, *cases), ["6.12-kcsan"])
        assert found == {(DATA, "SD card (sdhci)"): {"6.12-kcsan": passed}}


def test_programs_of_another_processor_have_a_row_of_their_own(tmp_path: Path) -> None:
    boot = case("test[pci]", kernel="6.12-arm64", **{"cell programs:armhf-virtio": "passed"})
    row = ("`steady record`, `trace` and `bench`: counts (armhf)", "virtio-blk")
    assert rows(results(tmp_path, boot), ["6.12-arm64"]) == {row: {"6.12-arm64": True}}
    assert rows(results(tmp_path, boot), ["6.1"]) == {}


def test_what_did_not_run_stays_as_the_page_has_it_unless_its_kernel_is_another() -> None:
    columns = {"6.1": "6.1 now", "6.12": "6.12 now"}
    lines = [
        "<!-- tested: written by hand -->",
        "",
        "| what | disk | 6.1 now | 6.12 before |",
        "| --- | --- | --- | --- |",
        f"| {DATA} | NVMe | passed | passed |",
        f"| {REMOVED} | NVMe | **failed** | passed |",
        f"| {REMOVED} | virtio-blk | not run | passed |",
        "| what is no longer tested | NVMe | passed | passed |",
        "<!-- /tested -->",
    ]
    assert earlier("\n".join(lines), "tested", columns) == {
        (DATA, "NVMe"): {"6.1": True},
        (REMOVED, "NVMe"): {"6.1": False},
        (REMOVED, "virtio-blk"): {},
    }


def test_disks_with_the_same_cells_share_a_line_that_is_read_as_one_cell_each() -> None:
    columns = {"6.1": "6.1 now"}
    found = {
        (DATA, disk): {"6.1": disk != "null_blk"} for disk in ("NVMe", "null_blk", "virtio-blk")
    }
    lines = list(table(columns, found))
    assert lines[2:] == [
        f"| {DATA} | NVMe, virtio-blk | passed |",
        f"| {DATA} | null_blk | **failed** |",
    ]
    page = "\n".join(["<!-- tested: written by hand -->", *lines, "<!-- /tested -->"])
    assert earlier(page, "tested", columns) == found


def test_kernel_tests_with_the_same_cells_share_a_line_that_is_read_as_one_cell_each() -> None:
    columns = {"6.1": "6.1 now"}
    one, two = sorted(f"k2: `{path.stem}`" for path in kernel_tests())[:2]
    found = {(one, "null_blk"): {"6.1": True}, (two, "null_blk"): {"6.1": True}}
    lines = list(table(columns, found))
    assert lines[2:] == [f"| {one}, {two.removeprefix('k2: ')} | null_blk | passed |"]
    page = "\n".join(["<!-- tested: written by hand -->", *lines, "<!-- /tested -->"])
    assert earlier(page, "tested", columns) == found
