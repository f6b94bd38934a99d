# SPDX-License-Identifier: MIT OR Apache-2.0
"""The libraries of the demo are those of the tests, in the same versions."""

import re

from steady_lab.paths import PROJECT


def locked(name: str) -> dict[str, set[str]]:
    """Hashes by "library==version"."""
    text = (PROJECT / "lab" / name).read_text()
    entries = re.split(r"^(?=[a-z])", text, flags=re.MULTILINE)[1:]
    return {entry.split()[0]: set(re.findall(r"sha256:\w+", entry)) for entry in entries}


def test_the_demo_has_the_libraries_of_the_tests() -> None:
    demo, tests = locked("requirements-demo.lock"), locked("requirements.lock")
    assert "matplotlib" in {name.partition("==")[0] for name in demo}
    assert {name: tests.get(name) for name in demo} == demo
