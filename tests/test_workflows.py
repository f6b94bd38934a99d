# SPDX-License-Identifier: MIT OR Apache-2.0
"""CI, the nightly run and the container file agree on the system; the nightly jobs run the whole
soak; the keys of caches name what decides them."""

import re
import subprocess

from steady_lab.paths import PROJECT

WORKFLOWS = PROJECT / ".github" / "workflows"
CI, NIGHTLY = (
    (WORKFLOWS / f"{name}.yml").read_text(encoding="utf-8") for name in ("ci", "nightly")
)
CONTAINER = (PROJECT / ".ci" / "Containerfile").read_text(encoding="utf-8")
# GitHub ends a job after that.
MINUTES_MAX = 360
# What decides the content of a cache, of those that both workflows have.
DECIDES = {
    "lab-": ("lab/kernel/**", "lab/root/**", "lab/steady_lab/kernels/**", "lab/steady_lab/root/**")
    + ("experiments/applications/**", "scripts/setup"),
    "rust-": ("device/**", "lab/root/packages.lock", "lab/steady_lab/root/cargo.py"),
}


def keys(workflow: str) -> list[tuple[str, list[str]]]:
    """Return the start of each key that has a hash of files, and the patterns of the files."""
    matches = re.findall(r"^ +key: (\S+-)\$\{\{ hashFiles\((.*)\) \}\}$", workflow, re.MULTILINE)
    return [(start, re.findall(r"'([^']+)'", patterns)) for start, patterns in matches]


def found(pattern: str, text: str) -> set[str]:
    return set(re.findall(pattern, text, re.MULTILINE))


def test_the_workflows_run_in_the_system_of_the_container_file() -> None:
    for workflow in (CI, NIGHTLY):
        image, packages = r"^ +image: (.*)$", r"^  PACKAGES: (.*)$"
        assert found(image, workflow) == found(r"^FROM (.*)$", CONTAINER)
        assert found(packages, workflow) == found(r"--no-install-recommends (.*)$", CONTAINER)


def test_the_nightly_workflow_runs_each_part_of_the_soak_once() -> None:
    jobs = re.findall(r"run: scripts/soak (.+?) \}", NIGHTLY)
    listed = subprocess.run(
        [str(PROJECT / "scripts/soak"), "--list"], capture_output=True, text=True, check=True
    )
    parts = [line.split()[0] for line in listed.stdout.splitlines()]
    assert sorted(" ".join(jobs).split()) == sorted(parts)


def test_each_nightly_job_has_a_time_limit_that_github_allows() -> None:
    jobs = re.findall(r"^ +- \{ minutes: (\d+), run: .+ \}$", NIGHTLY, re.MULTILINE)
    assert len(jobs) == len(re.findall(r"^ +- \{ ", NIGHTLY, re.MULTILINE))
    assert "timeout-minutes: ${{ matrix.minutes }}" in NIGHTLY
    assert all(0 < int(minutes) < MINUTES_MAX for minutes in jobs)


def test_a_key_of_a_cache_has_all_that_decides_its_content() -> None:
    for workflow in (CI, NIGHTLY):
        known = keys(workflow)
        assert {start: sorted(patterns) for start, patterns in known} == {
            start: sorted(patterns) for start, patterns in DECIDES.items()
        }
        for _, patterns in known:
            assert all(list(PROJECT.glob(pattern)) for pattern in patterns), patterns


def test_the_nightly_workflow_takes_no_result_from_the_cache() -> None:
    assert 'STEADYIO_TEST_CACHE: "0"' in NIGHTLY
    assert "!~/.cache/steadyio/boots" in NIGHTLY and "!~/.cache/steadyio/tests" in NIGHTLY
