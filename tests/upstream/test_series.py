# SPDX-License-Identifier: MIT OR Apache-2.0
"""The patch series for the kernel can be made of the module's sources, and applies."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from trees import RELEASE, SERIES, SIGNER, make_series, run, signed_off, source_tree

sys.path.insert(0, str(SERIES.parent))
import series as kernel_series  # noqa: E402
import sources  # noqa: E402


@pytest.fixture(autouse=True)
def signer(monkeypatch: pytest.MonkeyPatch) -> None:
    signed_off(monkeypatch)


def small_tree(folder: Path) -> Path:
    """The files of the tree that the series changes, in a repository."""
    for name in ("Makefile", *kernel_series.CHANGED):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source_tree() / name, folder / name)
    run(["git", "init", "--quiet"], folder)
    run(["git", "add", "--all"], folder)
    run(["git", "commit", "--quiet", "--message", "tree"], folder)
    return folder


def test_each_patch_applies_and_is_signed(tmp_path: Path) -> None:
    tree = small_tree(tmp_path / "tree")
    cover, *patches = make_series(tree, tmp_path / "patches")
    assert "***" not in cover.read_text() and "@TABLE" not in cover.read_text()
    for patch in patches:
        run(["git", "am", "--quiet", "--whitespace=error", str(patch)], tree)
        assert f"Signed-off-by: {SIGNER}" in patch.read_text()
    assert len(patches) == len(sources.stages()) - 1
    last = sources.files_at(len(patches))
    assert {path.name for path in (tree / "block" / "k2").glob("*.[ch]")} == last.keys()
    assert (tree / "block" / "k2" / "main.c").read_text() == last["main.c"]


def test_the_last_patch_has_the_code_of_the_module() -> None:
    """Only stages/0-module says what differs: no other stage's text or stub is left."""
    last = sources.files_at(len(sources.stages()) - 1)
    for stub in sources.UPSTREAM.glob("stages/*/stubs/*.h"):
        assert last[stub.name] != stub.read_text(), stub
    for name in ("declared.c", "policy.c", "lookahead.c"):
        module = (sources.KERNEL / "policy" / f"k2_{name}").read_text()
        functions = re.findall(r"^[\w *]+ \**(\w+)\(", module, re.MULTILINE)
        assert functions == re.findall(r"^[\w *]+ \**(\w+)\(", last[name], re.MULTILINE)


def test_a_tree_of_another_release_is_refused(tmp_path: Path) -> None:
    for name in kernel_series.CHANGED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\n")
    refused = subprocess.run(
        [sys.executable, SERIES, tmp_path, tmp_path / "out"], capture_output=True, text=True
    )
    assert refused.returncode == 1
    assert f"is Linux 6.12, but the series is for {RELEASE}" in refused.stderr


def test_a_change_of_the_module_that_the_series_does_not_know_is_found() -> None:
    part = sources.Part("1-x", "k2_main.c", lines=["\tquoted();\n"])
    assert part.removed_from("a\n\tquoted();\nb\n") == "a\nb\n"
    with pytest.raises(sources.SeriesError, match="quotes a text that k2_main.c has 0 times"):
        part.removed_from("a\n\tchanged();\nb\n")


def test_a_definition_goes_with_its_comment() -> None:
    text = "int a;\n\n/* Old. */\nstatic int b(int c)\n{\n\treturn c;\n}\n\nint d;\n"
    assert sources.without_definition(text, "b", "x") == "int a;\n\nint d;\n"
    assert sources.definition(text, "b", "x").startswith("/* Old. */\nstatic int b")
    with pytest.raises(sources.SeriesError, match="e is defined 0 times"):
        sources.without_definition(text, "e", "x")


def test_a_source_that_no_patch_has_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "k2_new.c").touch()
    monkeypatch.setattr(sources, "SOURCES", (*sources.SOURCES, tmp_path))
    with pytest.raises(sources.SeriesError, match="to correct: k2_new.c"):
        sources.module_files()


@pytest.mark.parametrize("text", ["/* 6.1 has none. */", '#include "../compat/x.h"'])
def test_what_is_for_other_releases_is_found(text: str) -> None:
    assert sources.in_series("/* All. */", "k2_x.c") == "/* All. */"
    with pytest.raises(sources.SeriesError, match="leaves in k2_x.c what only the module needs"):
        sources.in_series(text, "k2_x.c")
