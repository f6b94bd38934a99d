# SPDX-License-Identifier: MIT OR Apache-2.0
"""`make test` tests the crates that changed since they passed, and those built of them."""

from pathlib import Path

import crates
import pytest
import rust_part
import verdicts

TRACE = {"steadyio-trace", "steadyio-model", "steady"}


class Cargo:
    """Notes which crates would be tested; all of them pass unless `status` says otherwise."""

    def __init__(self) -> None:
        self.status, self.names = 0, set[str]()

    def __call__(self, nextest: list[str], names: list[str]) -> int:
        self.names = set(names)
        return self.status

    def tested(self) -> set[str]:
        self.names = set()
        verdicts.key_of.cache_clear()
        verdicts._kept.cache_clear()
        assert rust_part.main([]) == self.status
        return self.names


@pytest.fixture
def cargo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cargo:
    cargo = Cargo()
    monkeypatch.setattr(verdicts, "KEPT", tmp_path / "verdicts.json")
    monkeypatch.setattr(rust_part, "run", cargo)
    monkeypatch.setenv("PROPTEST_RNG_SEED", rust_part.SEED)
    monkeypatch.delenv("STEADYIO_TEST_CACHE", raising=False)
    return cargo


def change(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = verdicts._content
    monkeypatch.setattr(verdicts, "_content", lambda of: content(of) + "x" * (of == path))


def everything() -> set[str]:
    return set(crates.all_crates()) - rust_part.WITHOUT_TESTS


def test_what_passed_is_not_tested_again(cargo: Cargo, capsys: pytest.CaptureFixture[str]) -> None:
    assert cargo.tested() == everything()
    assert cargo.tested() == set()
    assert f"cached: {len(everything())} of {len(everything())} crates" in capsys.readouterr().out


def test_a_failure_is_not_kept(cargo: Cargo) -> None:
    cargo.status = 100
    assert cargo.tested() == cargo.tested() == everything()


@pytest.mark.parametrize(
    ("path", "tested"),
    [
        ("device/trace/src/lib.rs", TRACE),
        ("device/trace/tests/traces/host-report-t.txt", TRACE),
        (
            "experiments/devices/samsung-970-evo-plus-250gb.toml",
            {"steadyio-bound", "steadyio-capi", "steady"},
        ),
        ("docs/spec/record-framing-1.md", {"steadyio-recorder", "steadyio-capi", "steady"}),
        ("docs/index.md", {"steadyio-capi", "steady"}),
        ("device/Cargo.lock", None),
        ("device/testing/src/lib.rs", None),
        ("kernel/policy/k2_policy.c", set()),
    ],
)
def test_a_changed_file_makes_these_run_again(
    path: str, tested: set[str] | None, cargo: Cargo, monkeypatch: pytest.MonkeyPatch
) -> None:
    cargo.tested()
    change(path, monkeypatch)
    found = cargo.tested()
    if tested is None:
        assert len(found) > len(everything()) // 2
    else:
        assert found == tested


def test_without_the_cache_all_are_tested(cargo: Cargo, monkeypatch: pytest.MonkeyPatch) -> None:
    cargo.tested()
    monkeypatch.setenv("STEADYIO_TEST_CACHE", "0")
    assert cargo.tested() == everything()
    monkeypatch.delenv("STEADYIO_TEST_CACHE")
    monkeypatch.setenv("PROPTEST_RNG_SEED", "7")
    assert cargo.tested() == everything()
