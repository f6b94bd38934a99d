# SPDX-License-Identifier: MIT OR Apache-2.0
"""The manual page k2(4) names every file that k2 has in sysfs."""

import re

from steady_lab.paths import PROJECT


def test_the_page_names_each_file_in_sysfs() -> None:
    source = (PROJECT / "kernel" / "k2" / "k2_sysfs.c").read_text()
    page = (PROJECT / "packaging" / "man" / "k2.4").read_text()
    files = set(re.findall(r"__ATTR\((\w+),", source))
    files |= {f"latency_{name}" for name in re.findall(r"K2_LATENCY_ATTR\((\w+)\),", source)}
    files -= {f"latency_rt{level}" for level in range(1, 7)} | {"latency_"}
    assert len(files) > 10
    assert {name for name in files if not re.search(rf"\b{name}\b", page)} == set()
